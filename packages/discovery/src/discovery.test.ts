import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { fuzzRuns, until, ManualClock } from '@bloom/time/testing';
import type { Answer, Packet } from 'dns-packet';
import dnsPacket from 'dns-packet';
import fc from 'fast-check';
import { createResolver, dnsStrategy, nodesList } from './index.js';
import { candidateNames, parseResolvConf } from './resolv-conf.js';

/** A real DNS server on loopback: UDP and TCP on one port, answering from a table that tests rewrite. */
async function startDns(table: Table): ReturnType<typeof bindDns> {
  // A port that is free for UDP may be taken for TCP.
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await bindDns(table);
    } catch (error) {
      if (attempt === 9) throw error;
    }
  }
}

type Table = Map<string, string[] | 'nxdomain' | 'servfail' | 'silent' | 'garbage'>;

async function bindDns(table: Table) {
  let truncateUdp = false;
  let forgeUdp = false;
  const counts = { udp: 0, tcp: 0 };
  const reply = (request: Packet, overTcp: boolean): Buffer | undefined => {
    const question = request.questions?.[0];
    const known = table.get(question?.name ?? '') ?? 'nxdomain';
    if (known === 'silent') return undefined;
    if (known === 'garbage') return Buffer.from('not a dns packet');
    const base: Packet = {
      type: 'response',
      ...(request.id === undefined ? {} : { id: request.id }),
      ...(request.questions ? { questions: request.questions } : {}),
    };
    const response: Packet =
      typeof known === 'string'
        ? { ...base, flags: known === 'nxdomain' ? 3 : 2 }
        : truncateUdp && !overTcp
          ? { ...base, flags: dnsPacket.TRUNCATED_RESPONSE }
          : {
              ...base,
              answers: known.map((data): Answer => ({ type: 'A', name: question?.name ?? '', ttl: 1, data })),
            };
    return overTcp ? dnsPacket.streamEncode(response) : dnsPacket.encode(response);
  };
  const udp: Socket = createSocket('udp4');
  udp.on('message', (data, from) => {
    counts.udp += 1;
    const request = dnsPacket.decode(data);
    const answer = reply(request, false);
    if (forgeUdp) for (const forged of forgeries(request)) udp.send(forged, from.port, from.address);
    if (answer) udp.send(answer, from.port, from.address);
  });
  await new Promise<void>((done) => udp.bind(0, '127.0.0.1', done));
  const { port } = udp.address();
  const tcp: Server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (data) => {
      counts.tcp += 1;
      const answer = reply(dnsPacket.streamDecode(data), true);
      // In two pieces, as a real network may deliver it.
      if (answer) {
        socket.write(answer.subarray(0, 5));
        setImmediate(() => socket.end(answer.subarray(5)));
      }
    });
  });
  await new Promise<void>((done, failed) => {
    tcp.once('error', (error) => udp.close(() => failed(error)));
    tcp.listen(port, '127.0.0.1', done);
  });
  expect((tcp.address() as AddressInfo).port).toBe(port);
  return {
    port,
    counts,
    truncate: (on: boolean) => (truncateUdp = on),
    forge: () => (forgeUdp = true),
    close: async () => {
      await new Promise<void>((done) => udp.close(done));
      await new Promise((done) => tcp.close(done));
    },
  };
}

/** Returns datagrams from the server's address that answer a different question. */
function forgeries(request: Packet): Buffer[] {
  const { id = 0, questions = [] } = request;
  const name = questions[0]?.name ?? '';
  const answer: Packet = {
    type: 'response',
    id,
    questions,
    answers: [{ type: 'A', name, ttl: 1, data: '198.51.100.66' }],
  };

  return [
    dnsPacket.encode({ ...answer, id: id ^ 1 }),
    dnsPacket.encode({ ...answer, questions: [{ type: 'A', name: 'other.internal' }] }),
    dnsPacket.encode({ ...answer, questions: [{ type: 'AAAA', name }] }),
    dnsPacket.encode({ ...answer, questions: [] }),
    dnsPacket.encode({ ...request, flags: 0 }),
    Buffer.alloc(3),
  ];
}

let running: Awaited<ReturnType<typeof startDns>> | undefined;
afterEach(async () => {
  await running?.close();
  running = undefined;
});

async function resolverFor(table: Parameters<typeof startDns>[0], conf = 'nameserver 127.0.0.1\noptions attempts:1') {
  running = await startDns(table);
  // Short only where nothing answers: on a busy machine an answer takes its time.
  const isSilent = [...table.values()].some((known) => known === 'silent' || known === 'garbage');
  const timeoutMs = isSilent ? 150 : 5_000;
  return createResolver({ readConfig: async () => conf, port: running.port, timeoutMs });
}

describe('the resolver', () => {
  test('returns every address of a name', async () => {
    const resolve4 = await resolverFor(new Map([['sfu.internal', ['10.0.0.1', '10.0.0.2']]]));
    expect(await resolve4('sfu.internal')).toEqual(['10.0.0.1', '10.0.0.2']);
  });

  test("waits for the answer to its question, whatever else comes from the server's address", async () => {
    const resolve4 = await resolverFor(new Map([['sfu.internal', ['10.0.0.1']]]));
    running?.forge();
    expect(await resolve4('sfu.internal')).toEqual(['10.0.0.1']);
  });

  test('retries over TCP when the answer was truncated', async () => {
    const many = Array.from({ length: 200 }, (_, i) => `10.0.1.${i}`);
    const resolve4 = await resolverFor(new Map([['sfu.internal', many]]));
    running?.truncate(true);
    expect(await resolve4('sfu.internal')).toHaveLength(200);
    expect(running?.counts.tcp).toBe(1);
  });

  test('distinguishes a name that does not exist from answers without information', async () => {
    const resolve4 = await resolverFor(
      new Map<string, 'servfail' | 'garbage'>([
        ['broken', 'servfail'],
        ['odd', 'garbage'],
      ]),
    );
    await expect(resolve4('gone')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(resolve4('broken')).rejects.toMatchObject({ code: 'FAILED' });
    await expect(resolve4('odd')).rejects.toMatchObject({ code: 'FAILED' });
  });

  test('gives up on a server that does not answer in time', async () => {
    const resolve4 = await resolverFor(new Map([['slow', 'silent' as const]]));
    await expect(resolve4('slow')).rejects.toMatchObject({
      code: 'FAILED',
      cause: { message: '127.0.0.1 did not answer within 150 ms' },
    });
  });

  test('moves to the next server when the first is not running', async () => {
    const resolve4 = await resolverFor(
      new Map([['sfu.internal', ['10.0.0.9']]]),
      'nameserver 127.0.0.2\nnameserver 127.0.0.1\noptions attempts:1',
    );
    expect(await resolve4('sfu.internal')).toEqual(['10.0.0.9']);
  });

  test('moves to the next server when there is no route to the first', async () => {
    const resolve4 = await resolverFor(
      new Map([['sfu.internal', ['10.0.0.9']]]),
      // A broadcast address is refused at once, as any address is while its network is unreachable.
      'nameserver 255.255.255.255\nnameserver 127.0.0.1\noptions attempts:1',
    );
    expect(await resolve4('sfu.internal')).toEqual(['10.0.0.9']);
  });

  test('tries the search list for a name without enough dots', async () => {
    const resolve4 = await resolverFor(
      new Map([['sfu.prod.svc', ['10.0.0.3']]]),
      'nameserver 127.0.0.1\nsearch dev.svc prod.svc\noptions attempts:1',
    );
    expect(await resolve4('sfu')).toEqual(['10.0.0.3']);
  });
});

describe('resolv.conf', () => {
  test('reads the options, comments and limits of resolv.conf', () => {
    const text =
      '# comment\nnameserver 1.1.1.1 ; x\nnameserver 2.2.2.2\nnameserver 3.3.3.3\nnameserver 4.4.4.4\nsearch a b\noptions ndots:3 timeout:2 attempts:9 rotate';
    expect(parseResolvConf(text)).toEqual({
      nameservers: ['1.1.1.1', '2.2.2.2', '3.3.3.3'],
      search: ['a', 'b'],
      ndots: 3,
      timeoutMs: 2000,
      attempts: 5,
    });
  });

  test('never throws on any content of resolv.conf', () => {
    const number = fc.constantFrom('', '-1', '0', '7', '99', '1e9', 'x');
    const option = fc
      .tuple(fc.constantFrom('ndots:', 'timeout:', 'attempts:', ''), number)
      .map((parts) => parts.join(''));
    const value = fc.oneof(option, fc.constantFrom('10.0.0.1', '.', '# x'), fc.string({ maxLength: 8 }));
    const keyword = fc.constantFrom('nameserver', 'search', 'domain', 'options', '', 'sortlist');
    const line = fc
      .tuple(keyword, fc.array(value, { maxLength: 6 }))
      .map(([word, values]) => [word, ...values].join(' '));
    const text = fc.array(fc.oneof(line, fc.string({ maxLength: 40 })), { maxLength: 20 });
    const options = new Set<string>();
    fc.assert(
      fc.property(text, fc.string({ maxLength: 40 }), (lines, name) => {
        const config = parseResolvConf(lines.join('\n'));
        expect(config.nameservers.length).toBeGreaterThan(0);
        expect(config.nameservers.length).toBeLessThanOrEqual(3);
        expect(config.ndots).toBeLessThanOrEqual(15);
        expect(config.timeoutMs).toBeGreaterThanOrEqual(1_000);
        expect(config.timeoutMs).toBeLessThanOrEqual(30_000);
        expect(config.attempts).toBeLessThanOrEqual(5);
        expect(candidateNames(name, config).length).toBeGreaterThan(0);
        const { nameservers, search, ndots, timeoutMs, attempts } = config;
        if (nameservers[0] !== '127.0.0.1') options.add('nameserver');
        if (search.length > 0) options.add('search');
        if (ndots !== 1) options.add('ndots');
        if (timeoutMs !== 5_000) options.add('timeout');
        if (attempts !== 2) options.add('attempts');
      }),
      { numRuns: fuzzRuns(10_000) },
    );
    expect([...options].toSorted()).toEqual(['attempts', 'nameserver', 'ndots', 'search', 'timeout']);
  });

  test('tries a name with enough dots unchanged first, and an absolute one only unchanged', () => {
    expect(candidateNames('a.b', { search: ['x'], ndots: 1 })).toEqual(['a.b', 'a.b.x']);
    expect(candidateNames('a', { search: ['x'], ndots: 1 })).toEqual(['a.x', 'a']);
    expect(candidateNames('a.', { search: ['x'], ndots: 1 })).toEqual(['a']);
  });
});

describe('the node list', () => {
  test('reports every name except its own, once', async () => {
    const reports: (readonly string[])[] = [];
    await nodesList({ self: 'a@h1', nodes: ['a@h1', 'b@h2'] }).start((nodes) => reports.push(nodes));
    expect(reports).toEqual([['b@h2']]);
  });
});

describe('the DNS strategy', () => {
  function polled(table: Parameters<typeof startDns>[0]) {
    const clock = new ManualClock();
    const reports: (readonly string[])[] = [];
    const warnings: string[] = [];
    const asked: string[] = [];
    return {
      clock,
      reports,
      warnings,
      asked,
      make: async () => {
        const resolve4 = await resolverFor(table);
        return dnsStrategy({
          self: 'bloom@10.0.0.1',
          query: 'sfu.internal',
          pollingIntervalMs: 5000,
          resolve4: (name) => {
            asked.push(name);
            return resolve4(name);
          },
          warn: (event) => warnings.push(event),
          clock,
        });
      },
    };
  }

  test('names the others by its own node name and each address', async () => {
    const p = polled(new Map([['sfu.internal', ['10.0.0.1', '10.0.0.2']]]));
    const strategy = await p.make();
    await strategy.start((nodes) => p.reports.push(nodes));
    expect(p.reports).toEqual([['bloom@10.0.0.2']]);
    strategy.stop();
    expect(p.clock.pending).toBe(0);
  });

  test('warns once that the name cannot be resolved, and keeps querying', async () => {
    const table = new Map<string, string[] | 'nxdomain'>([['sfu.internal', 'nxdomain']]);
    const p = polled(table);
    const strategy = await p.make();
    await strategy.start((nodes) => p.reports.push(nodes));
    p.clock.advance(4_999);
    expect(p.asked).toHaveLength(1);
    p.clock.advance(1);
    expect(p.asked).toHaveLength(2);
    expect(p.warnings).toEqual(['discovery.dns_failed']);
    table.set('sfu.internal', ['10.0.0.7']);
    await until(() => {
      p.clock.advance(5_000);
      return p.reports.length > 0;
    });
    expect(p.reports).toEqual([['bloom@10.0.0.7']]);
    expect(p.warnings).toEqual(['discovery.dns_failed']);
    strategy.stop();
  });

  test('sends one query at a time when the resolver is slower than the interval', async () => {
    const p = polled(new Map([['sfu.internal', 'silent' as const]]));
    const strategy = await p.make();
    const first = strategy.start((nodes) => p.reports.push(nodes));
    p.clock.advance(5_000);
    p.clock.advance(5_000);
    await first;
    expect(p.asked).toHaveLength(1);
    p.clock.advance(5_000);
    expect(p.asked).toHaveLength(2);
    strategy.stop();
  });
});
