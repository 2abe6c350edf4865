import { describe, expect, test } from '@jest/globals';
import { NameServer, testResolver } from '@bloom/discovery/testing';
import { countedRandomness } from '../testing/test-agent.js';
import { parseUri } from '../values.js';
import type { NameService, NaptrRecord, SrvRecord } from './locate.js';
import { locate, orderSrv, systemNames } from './locate.js';

interface Zone {
  naptr?: Record<string, NaptrRecord[]>;
  srv?: Record<string, SrvRecord[]>;
  a?: Record<string, string[]>;
}

/** Returns where a URI leads in a zone, and the questions asked on the way. */
async function find(uri: string, zone: Zone) {
  const asked: string[] = [];
  const ask =
    <T>(kind: keyof Zone) =>
    (name: string): Promise<T[]> => {
      asked.push(`${kind} ${name}`);
      return Promise.resolve((zone[kind]?.[name] ?? []) as T[]);
    };
  const names: NameService = { naptr: ask('naptr'), srv: ask('srv'), addresses: ask('a') };
  const targets = await locate(parseUri(uri), { names, randomness: countedRandomness() });
  return { targets: targets.map((target) => `${target.transport} ${target.host}:${target.port}`), asked };
}

const srv = (name: string, priority: number, { weight = 0, port = 5060 } = {}): SrvRecord => ({
  name,
  priority,
  weight,
  port,
});
const naptr = (service: string, order: number, replacement: string): NaptrRecord => ({
  service,
  order,
  preference: 0,
  flags: 's',
  replacement,
});

describe('locating a SIP URI (RFC 3263)', () => {
  test('returns an IP address itself, with its own or the default port and transport', async () => {
    expect(await find('sip:a@192.0.2.1', {})).toEqual({ targets: ['UDP 192.0.2.1:5060'], asked: [] });
    expect(await find('sip:[2001:db8::1]:5070;transport=tcp', {})).toMatchObject({ targets: ['TCP 2001:db8::1:5070'] });
  });

  test('returns the addresses of the name when a port is given', async () => {
    expect(await find('sip:pbx.test:5080', { a: { 'pbx.test': ['192.0.2.1', '192.0.2.2'] } })).toEqual({
      targets: ['UDP 192.0.2.1:5080', 'UDP 192.0.2.2:5080'],
      asked: ['a pbx.test'],
    });
  });

  test('follows NAPTR and SRV in their order, without TLS', async () => {
    const { targets } = await find('sip:pbx.test', {
      naptr: {
        'pbx.test': [
          naptr('SIP+D2U', 60, '_sip._udp.pbx.test'),
          naptr('SIPS+D2T', 40, '_sips._tcp.pbx.test'),
          naptr('SIP+D2T', 50, '_sip._tcp.pbx.test'),
        ],
      },
      srv: {
        '_sip._tcp.pbx.test': [srv('b.test', 20, { port: 5062 }), srv('a.test', 10, { port: 5061 })],
        '_sip._udp.pbx.test': [srv('c.test', 1)],
      },
      a: { 'a.test': ['192.0.2.1'], 'b.test': ['192.0.2.2'], 'c.test': ['192.0.2.3'] },
    });
    expect(targets).toEqual(['TCP 192.0.2.1:5061', 'TCP 192.0.2.2:5062', 'UDP 192.0.2.3:5060']);
  });

  test('follows SRV without NAPTR, and falls back to plain addresses', async () => {
    const a = { 'pbx.test': ['192.0.2.1'], 'sbc.test': ['192.0.2.2'] };
    expect((await find('sip:pbx.test', { srv: { '_sip._tcp.pbx.test': [srv('sbc.test', 1)] }, a })).targets).toEqual([
      'TCP 192.0.2.2:5060',
    ]);
    expect(await find('sip:pbx.test', { a })).toEqual({
      targets: ['UDP 192.0.2.1:5060'],
      asked: ['naptr pbx.test', 'srv _sip._udp.pbx.test', 'srv _sip._tcp.pbx.test', 'a pbx.test'],
    });
  });

  test('follows the SRV record of the transport it names', async () => {
    expect((await find('sip:pbx.test;transport=tcp', {})).asked).toEqual(['srv _sip._tcp.pbx.test', 'a pbx.test']);
  });

  test('returns nothing when the URI requires an unsupported transport', async () => {
    expect((await find('sips:192.0.2.1', {})).targets).toEqual([]);
    expect((await find('sip:192.0.2.1;transport=tls', {})).targets).toEqual([]);
  });

  test('returns a limited number of targets', async () => {
    const a = { 'pbx.test': Array.from({ length: 99 }, (_, at) => `192.0.2.${at}`) };
    expect((await find('sip:pbx.test:5060', { a })).targets).toHaveLength(16);
  });
});

test('draws SRV records of equal priority by weight (RFC 2782), and skips the host "."', () => {
  const records = [
    srv('light', 1, { weight: 1 }),
    srv('heavy', 1, { weight: 9 }),
    srv('later', 2, { weight: 100 }),
    srv('.', 0),
  ];
  const first = new Map<string, number>();
  for (let lot = 0; lot <= 10; lot += 1) {
    const ordered = orderSrv(records, { token: () => '', below: (below) => Math.min(lot, below - 1) });
    expect(ordered).toHaveLength(3);
    expect(ordered.at(-1)?.name).toBe('later');
    const name = ordered[0]?.name ?? '';
    first.set(name, (first.get(name) ?? 0) + 1);
  }
  expect(first).toEqual(
    new Map([
      ['light', 2],
      ['heavy', 9],
    ]),
  );
});

test('queries real name servers, and treats an unknown name as an empty answer', async () => {
  const dns = await NameServer.open();
  const data = {
    order: 1,
    preference: 2,
    flags: 's',
    services: 'SIP+D2U',
    regexp: '',
    replacement: '_sip._udp.pbx.test',
  };
  const target = { priority: 1, weight: 2, port: 5066, target: 'sbc.test' };
  dns.table.set('NAPTR pbx.test', { records: [{ type: 'NAPTR', name: 'pbx.test', data }] });
  dns.table.set('SRV _sip._udp.pbx.test', { records: [{ type: 'SRV', name: '_sip._udp.pbx.test', data: target }] });
  dns.set('sbc.test', ['192.0.2.66']);
  try {
    const names = systemNames(testResolver({ port: dns.port }));
    const targets = await locate(parseUri('sip:pbx.test'), { names, randomness: countedRandomness() });
    expect(targets).toEqual([{ transport: 'UDP', host: '192.0.2.66', port: 5066 }]);
    expect(await names.addresses('nowhere.test')).toEqual([]);
  } finally {
    await dns.close();
  }
});
