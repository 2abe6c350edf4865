import { createSocket } from 'node:dgram';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ManualClock, until } from '@bloom/time/testing';
import type { Answer } from 'dns-packet';
import { machineFiles, NameServer, testResolver } from '../testing/index.js';
import { Resolver } from './resolver.js';

let dns: NameServer;
beforeEach(async () => {
  dns = await NameServer.open();
});
afterEach(() => dns.close());

/** Names reserved by RFC 2606, since nothing else resolves them. */
const alias = (name: string, data: string): Answer => ({ type: 'CNAME', name, ttl: 60, data });
const a = (name: string, data: string): Answer => ({ type: 'A', name, ttl: 60, data });

/** Adds 500 names that the server never answers for, far more than may be asked about at once. */
function addSilentNames(): string[] {
  const names = Array.from({ length: 500 }, (_, at) => `hook${at}.test`);
  for (const name of names) dns.setBoth(name, 'silent');
  return names;
}

/** Lets time pass in steps while the resolver works. */
function advanceUntil(clock: ManualClock, stepMs: number, isDone: () => boolean): Promise<number> {
  return until(() => {
    clock.advance(stepMs);
    return isDone();
  });
}

describe('the addresses of a name', () => {
  test('returns addresses of both families, IPv4 first and in one spelling', async () => {
    dns.set('sfu.test', ['2001:db8:0:0::2', '10.0.0.1', '10.0.0.2']);
    const resolver = testResolver({ port: dns.port });
    expect(await resolver.addresses('SFU.test')).toEqual(['10.0.0.1', '10.0.0.2', '2001:db8::2']);
  });

  test('returns the addresses of a name with a single family', async () => {
    dns.set('six.test', ['2001:db8::6']);
    dns.table.set('A four.test', { records: [a('four.test', '10.0.0.4')] });
    dns.table.set('AAAA four.test', 'servfail');
    const resolver = testResolver({ port: dns.port });
    expect(await resolver.addresses('six.test')).toEqual(['2001:db8::6']);
    expect(await resolver.addresses('four.test')).toEqual(['10.0.0.4']);
  });

  test('does not wait long for a family that the name server never answers for', async () => {
    dns.table.set('A four.test', { records: [a('four.test', '10.0.0.4')] });
    dns.table.set('AAAA four.test', 'silent');
    const clock = new ManualClock();
    let found: string[] | undefined;
    void testResolver({ port: dns.port, clock })
      .addresses('four.test')
      .then((addresses) => (found = addresses));
    await advanceUntil(clock, 10, () => found !== undefined);
    expect(found).toEqual(['10.0.0.4']);
    // The name server itself would have had 5 s.
    expect(clock.now()).toBeLessThan(5_000);
    clock.advance(5_000);
  });

  test('follows aliases to their end', async () => {
    const records = [alias('www.test', 'cdn.test'), a('edge.test', '10.0.0.9'), alias('cdn.test', 'edge.test')];
    dns.setBoth('www.test', { records: [...records, a('other.test', '10.0.0.66')] });
    expect(await testResolver({ port: dns.port }).addresses('www.test')).toEqual(['10.0.0.9']);
  });

  test('returns an address as itself, and no addresses for text that cannot be a name', async () => {
    const resolver = testResolver({ port: dns.port });
    expect(await resolver.addresses('2001:db8::1')).toEqual(['2001:db8::1']);
    for (const name of ['', '.', 'a..b', `${'x'.repeat(64)}.test`, 'x.'.repeat(127)])
      await expect(resolver.addresses(name)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(dns.asked).toEqual([]);
  });

  test('fails differently for a name that does not exist and for one without an answer', async () => {
    dns.setBoth('broken.test', 'servfail');
    const resolver = testResolver({ port: dns.port });
    await expect(resolver.addresses('gone.test')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(resolver.addresses('broken.test')).rejects.toMatchObject({
      code: 'FAILED',
      message: 'no name server answered for broken.test (127.0.0.1)',
      cause: { message: '127.0.0.1: it answered with error 2' },
    });
  });

  test('resolves localhost and the names below it to loopback, without a question', async () => {
    const resolver = testResolver({ port: dns.port });
    expect(await resolver.addresses('localhost')).toEqual(['127.0.0.1', '::1']);
    expect(await resolver.addresses('camera.LOCALHOST.')).toEqual(['127.0.0.1', '::1']);
    expect(dns.asked).toEqual([]);
  });
});

describe('the configuration of the machine', () => {
  test('prefers the hosts file', async () => {
    const resolver = testResolver({ port: dns.port, hosts: '::1 box\n10.0.0.5 Good.test box # comment\n' });
    expect(await resolver.addresses('good.test')).toEqual(['10.0.0.5']);
    expect(await resolver.addresses('box')).toEqual(['10.0.0.5', '::1']);
    expect(dns.asked).toEqual([]);
  });

  test('completes a short name of Kubernetes with the search list', async () => {
    dns.set('mediasoup.prod.svc.cluster.local', ['10.0.0.3']);
    const resolvConf =
      'nameserver 127.0.0.1\nsearch dev.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5';
    const resolver = testResolver({ port: dns.port, resolvConf });
    expect(await resolver.addresses('mediasoup.prod')).toEqual(['10.0.0.3']);
    expect(dns.asked.filter((question) => question.startsWith('A '))).toEqual([
      'A mediasoup.prod.dev.svc.cluster.local',
      'A mediasoup.prod.svc.cluster.local',
    ]);
  });

  test('ends the search at a silent name server, since a later name could be another host', async () => {
    const clock = new ManualClock();
    dns.setBoth('box.one', 'silent');
    dns.set('box.two', ['10.0.0.66']);
    const resolvConf = 'nameserver 127.0.0.1\nsearch one two\noptions attempts:1';
    const failure = testResolver({ port: dns.port, resolvConf, clock })
      .addresses('box')
      .catch((error: { code: string }) => error.code);
    await until(() => dns.asked.length === 2);
    clock.advance(5_000);
    expect(await failure).toBe('FAILED');
  });

  test('finds the names after a search domain whose zone is broken', async () => {
    dns.setBoth('api.test.corp.test', 'servfail');
    dns.set('api.test', ['10.0.0.7']);
    const resolvConf = 'nameserver 127.0.0.1\nsearch cluster.local corp.test\noptions ndots:5';
    const resolver = testResolver({ port: dns.port, resolvConf });
    expect(await resolver.addresses('api.test')).toEqual(['10.0.0.7']);
    await expect(resolver.addresses('gone.test')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    dns.setBoth('lost.test.corp.test', 'servfail');
    await expect(resolver.addresses('lost.test')).rejects.toMatchObject({
      code: 'FAILED',
      message: 'no name server answered for lost.test.corp.test (127.0.0.1)',
    });
  });

  test('applies changes to its files', async () => {
    const clock = new ManualClock();
    const machine = machineFiles('nameserver 127.0.0.1\nsearch one.test\n', '10.0.0.1 listed.test\n');
    dns.set('box.one.test', ['10.0.0.2']);
    dns.set('box.two.test', ['10.0.0.3']);
    try {
      const resolver = new Resolver({ ...machine, port: dns.port, clock });
      expect(await resolver.addresses('box')).toEqual(['10.0.0.2']);
      machine.write('resolvConf', 'nameserver 127.0.0.1\nsearch two.test two.test\n');
      machine.write('hosts', '10.0.0.9 listed.test other.test\n');
      expect(await resolver.addresses('listed.test')).toEqual(['10.0.0.1']);
      clock.advance(2_000);
      expect(await resolver.addresses('listed.test')).toEqual(['10.0.0.9']);
      expect(await resolver.addresses('box')).toEqual(['10.0.0.3']);
    } finally {
      machine.remove();
    }
  });
});

describe('questions', () => {
  test('asks identical concurrent questions once', async () => {
    dns.set('sfu.test', ['10.0.0.1']);
    const resolver = testResolver({ port: dns.port });
    await Promise.all(Array.from({ length: 50 }, () => resolver.addresses('sfu.test')));
    expect(dns.asked.toSorted()).toEqual(['A sfu.test', 'AAAA sfu.test']);
  });

  test('asks again once the TTL of the answer has expired', async () => {
    dns.set('sfu.test', ['10.0.0.1', '2001:db8::1'], 30);
    const clock = new ManualClock();
    const resolver = testResolver({ port: dns.port, clock });
    await resolver.addresses('sfu.test');
    dns.set('sfu.test', ['10.0.0.2', '2001:db8::2'], 30);
    clock.advance(29_999);
    expect(await resolver.addresses('sfu.test')).toEqual(['10.0.0.1', '2001:db8::1']);
    clock.advance(1);
    expect(await resolver.addresses('sfu.test')).toEqual(['10.0.0.2', '2001:db8::2']);
  });

  test('always asks when the caller wants a fresh answer', async () => {
    dns.set('sfu.test', ['10.0.0.1', '2001:db8::1']);
    const resolver = testResolver({ port: dns.port });
    await resolver.addresses('sfu.test');
    dns.set('sfu.test', ['10.0.0.2', '2001:db8::2']);
    expect(await resolver.addresses('sfu.test', { isFresh: true })).toEqual(['10.0.0.2', '2001:db8::2']);
  });

  test('remembers missing names as long as the zone says', async () => {
    const data = { mname: 'ns.test', rname: 'root.test', serial: 1, refresh: 1, retry: 1, expire: 1, minimum: 20 };
    dns.setBoth('gone.test', { records: [], authorities: [{ type: 'SOA', name: 'test', ttl: 60, data }] });
    const clock = new ManualClock();
    const resolver = testResolver({ port: dns.port, clock });
    const isUnknown = () => expect(resolver.addresses('gone.test')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await isUnknown();
    clock.advance(19_999);
    await isUnknown();
    expect(dns.asked).toHaveLength(2);
    clock.advance(1);
    await isUnknown();
    expect(dns.asked).toHaveLength(4);
  });

  test('delays no other questions for silent names, however many there are', async () => {
    const silent = addSilentNames();
    dns.set('good.test', ['10.0.0.1']);
    const clock = new ManualClock();
    const resolver = testResolver({ port: dns.port, clock });
    const failures = silent.map((name) => resolver.addresses(name).catch((error: { code: string }) => error.code));
    let found: string[] | undefined;
    void resolver.addresses('good.test').then((addresses) => (found = addresses));
    // 1,000 questions wait for 128 slots, each of which is freed after a second.
    await advanceUntil(clock, 100, () => found !== undefined);
    expect(found).toEqual(['10.0.0.1']);
    clock.advance(30_000);
    await advanceUntil(clock, 1_000, () => clock.pending === 0);
    expect(new Set(await Promise.all(failures))).toEqual(new Set(['FAILED']));
  });

  test('asks about names that were found before ahead of all that wait', async () => {
    const clock = new ManualClock();
    const resolver = testResolver({ port: dns.port, clock });
    dns.set('good.test', ['10.0.0.1', '2001:db8::1'], 1);
    await resolver.addresses('good.test');
    clock.advance(1_000);
    const silent = addSilentNames();
    const failures = silent.map((name) => resolver.addresses(name).catch(() => undefined));
    await until(() => dns.asked.filter((question) => question.includes('hook')).length === 128);
    const found = resolver.addresses('good.test');
    clock.advance(1_000);
    expect(await found).toEqual(['10.0.0.1', '2001:db8::1']);
    await advanceUntil(clock, 1_000, () => clock.pending === 0);
    await Promise.all(failures);
  });
});

test('finds every name while the first name server is silent, however many names are looked up', async () => {
  const questions: string[] = [];
  const silent = createSocket('udp4').on('message', () => questions.push('one'));
  await new Promise<void>((done) => silent.bind(dns.port, '127.0.0.2', done));
  const names = Array.from({ length: 80 }, (_, at) => `hook${at}.test`);
  for (const name of names) dns.set(name, ['10.0.0.1']);
  const clock = new ManualClock();
  const resolvConf = 'nameserver 127.0.0.2\nnameserver 127.0.0.1\n';
  const resolver = testResolver({ port: dns.port, clock, resolvConf });
  try {
    const found = Promise.all(names.map((name) => resolver.addresses(name).catch((error: Error) => error.message)));
    // As many questions as there are slots, then the rest.
    for (const asked of [128, 160]) {
      await until(() => questions.length === asked);
      clock.advance(1_000);
    }
    expect(await found).toEqual(names.map(() => ['10.0.0.1']));
  } finally {
    silent.close();
  }
});

describe('the lookup function', () => {
  const lookUp = (resolver: Resolver, host: string, options: object): Promise<unknown[]> =>
    new Promise((resolve) => resolver.lookup(host, options, (...outcome) => resolve(outcome)));

  test('returns what `dns.lookup` would, IPv6 first', async () => {
    dns.set('sfu.test', ['10.0.0.1', '2001:db8::1']);
    const resolver = testResolver({ port: dns.port });
    const four = { address: '10.0.0.1', family: 4 };
    const six = { address: '2001:db8::1', family: 6 };
    expect(await lookUp(resolver, 'sfu.test', { all: true })).toEqual([null, [six, four]]);
    expect(await lookUp(resolver, 'sfu.test', { family: 'IPv4', all: true })).toEqual([null, [four]]);
    expect(await lookUp(resolver, 'sfu.test', { family: 4 })).toEqual([null, '10.0.0.1', 4]);
  });

  test('asks only for the requested family', async () => {
    dns.set('sfu.test', ['10.0.0.1', '2001:db8::1']);
    const resolver = testResolver({ port: dns.port, hosts: '10.0.0.2 listed.test\n::2 listed.test\n' });
    expect(await lookUp(resolver, 'sfu.test', { family: 4 })).toEqual([null, '10.0.0.1', 4]);
    expect(dns.asked).toEqual(['A sfu.test']);
    expect(await resolver.addresses('listed.test', { family: 6 })).toEqual(['::2']);
    expect(await resolver.addresses('localhost', { family: 6 })).toEqual(['::1']);
  });

  test('fails with the codes of `dns.lookup`', async () => {
    dns.setBoth('broken.test', 'servfail');
    dns.set('four.test', ['10.0.0.1']);
    const resolver = testResolver({ port: dns.port });
    expect(await lookUp(resolver, 'gone.test', {})).toMatchObject([{ code: 'ENOTFOUND', hostname: 'gone.test' }, '']);
    expect(await lookUp(resolver, 'four.test', { family: 6 })).toMatchObject([{ code: 'ENOTFOUND' }, '']);
    expect(await lookUp(resolver, 'broken.test', {})).toMatchObject([{ code: 'EAI_AGAIN' }, '']);
  });
});

test('returns SRV and NAPTR records of a fully qualified name', async () => {
  const srv = { priority: 1, weight: 2, port: 5066, target: 'sbc.test' };
  const naptr = {
    order: 1,
    preference: 2,
    flags: 's',
    services: 'SIP+D2U',
    regexp: '',
    replacement: '_sip._udp.pbx.test',
  };
  dns.table.set('SRV _sip._udp.pbx.test', { records: [{ type: 'SRV', name: '_sip._udp.pbx.test', data: srv }] });
  dns.table.set('NAPTR pbx.test', { records: [{ type: 'NAPTR', name: 'pbx.test', data: naptr }] });
  const resolver = testResolver({ port: dns.port });
  expect(await resolver.records('SRV', '_sip._udp.pbx.test')).toEqual([
    { priority: 1, weight: 2, port: 5066, name: 'sbc.test' },
  ]);
  expect(await resolver.records('NAPTR', 'pbx.test')).toMatchObject([{ service: 'SIP+D2U', flags: 's' }]);
  expect(await resolver.records('SRV', 'gone.test')).toEqual([]);
});
