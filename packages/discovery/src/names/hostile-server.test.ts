// Misbehaving name servers, and strangers who impersonate one.
import { once } from 'node:events';
import { createSocket } from 'node:dgram';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { fuzzRuns, ManualClock, until } from '@bloom/time/testing';
import dnsPacket, { type Answer, type Packet } from 'dns-packet';
import fc from 'fast-check';
import { listenOnBoth, NameServer, testResolver } from '../testing/index.js';
import { queryFor, readAnswer } from './answer.js';
import { plannedTries } from './exchange.js';

let dns: NameServer;
beforeEach(async () => {
  dns = await NameServer.open();
});
afterEach(() => dns.close());

const NAME = 'sfu.test';
const good = (query: Buffer): Packet => {
  const { id = 0, questions = [] } = dnsPacket.decode(query);
  return { type: 'response', id, questions, answers: [{ type: 'A', name: NAME, ttl: 60, data: '10.0.0.1' }] };
};
const bad = '198.51.100.66';

/** Returns datagrams from the server's address that answer a different question. */
function forgeries(query: Buffer): Buffer[] {
  const right = good(query);
  const answers: Answer[] = [{ type: 'A', name: NAME, ttl: 60, data: bad }];
  const { id = 0 } = right;

  return [
    dnsPacket.encode({ ...right, answers, id: id ^ 1 }),
    dnsPacket.encode({ ...right, answers, questions: [{ type: 'A', name: 'other.test' }] }),
    dnsPacket.encode({ ...right, answers, questions: [{ type: 'TXT', name: NAME }] }),
    dnsPacket.encode({ ...right, answers, questions: [] }),
    dnsPacket.encode({ type: 'query', id, questions: right.questions ?? [] }),
    Buffer.alloc(3),
  ];
}

/** Asks for IPv4 only: there is no answer for the other family. */
async function askFor(answer: (query: Buffer, overTcp: boolean) => readonly Buffer[]) {
  dns.table.set(`A ${NAME}`, answer);
  return await testResolver({ port: dns.port }).addresses(NAME);
}

describe('hostile answers', () => {
  test("ignores an answer to another question, whatever comes from the server's address", async () => {
    expect(await askFor((query) => [...forgeries(query), dnsPacket.encode(good(query))])).toEqual(['10.0.0.1']);
  });

  test('never receives an answer from another address', async () => {
    const stranger = createSocket('udp4').bind(0, '127.0.0.1');
    await once(stranger, 'listening');
    // The server itself sees where the question came from, and tells the stranger.
    const server = createSocket('udp4').bind(0, '127.0.0.1');
    await once(server, 'listening');
    server.on('message', (query, from) => {
      const forged = dnsPacket.encode({ ...good(query), answers: [{ type: 'A', name: NAME, ttl: 60, data: bad }] });
      stranger.send(forged, from.port, from.address, () =>
        server.send(dnsPacket.encode(good(query)), from.port, from.address),
      );
    });
    try {
      expect(await testResolver({ port: server.address().port }).addresses(NAME)).toEqual(['10.0.0.1']);
    } finally {
      stranger.close();
      server.close();
    }
  });

  test.each<[string, (query: Buffer) => Buffer]>([
    ['is a header alone', (query) => cut(query, 12)],
    ['ends within its question', (query) => cut(query, 15)],
    ['ends within a record', (query) => cut(query, 12 + NAME.length + 6 + 3)],
    ['has a body of another kind', (query) => Buffer.concat([cut(query, 12), Buffer.alloc(40, 0xff)])],
  ])('repeats the question over TCP when a truncated answer %s', async (_, truncated) => {
    const found = await askFor((query, overTcp) => [overTcp ? dnsPacket.encode(good(query)) : truncated(query)]);
    expect(found).toEqual(['10.0.0.1']);
    expect(dns.asked).toContain(`A ${NAME} tcp`);
  });

  test.each<[string, (query: Buffer) => Buffer]>([
    ['aliases that never end', (query) => dnsPacket.encode({ ...good(query), answers: loop(2) })],
    ['too many aliases', (query) => dnsPacket.encode({ ...good(query), answers: loop(20) })],
    ['counts without records', (query) => counting(dnsPacket.encode(good(query)), 65_535)],
    ['names that point to themselves', (query) => pointing(dnsPacket.encode(good(query)))],
  ])('refuses an answer with %s and gives a reason', async (_, answer) => {
    await expect(askFor((query) => [answer(query)])).rejects.toMatchObject({
      code: 'FAILED',
      cause: { message: expect.stringContaining('its answer is malformed') },
    });
  });

  test('reads an answer of 64 KiB, up to 1,024 addresses', async () => {
    const answers = Array.from(
      { length: 2_000 },
      (_, at): Answer => ({ type: 'A', name: NAME, ttl: 60, data: `10.0.${at >> 8}.${at & 255}` }),
    );
    dns.truncates = true;
    const found = await askFor((query, overTcp) => {
      const whole = dnsPacket.encode({ ...good(query), answers });
      return [overTcp ? whole : cut(query, 12)];
    });
    expect(found).toHaveLength(1_024);
  });

  test('ends an answer that drips over TCP at the time limit', async () => {
    const clock = new ManualClock();
    const drips = new Set<NodeJS.Timeout>();
    const { udp, tcp } = await listenOnBoth('127.0.0.1');
    const { port } = udp.address();
    udp.on('message', (query, from) => udp.send(cut(query, 12), from.port, from.address));
    const connected: string[] = [];
    tcp.on('connection', (socket) => {
      connected.push('one');
      socket.on('error', () => undefined);
      socket.write(Buffer.of(255, 255));
      const drip = setInterval(() => socket.write(Buffer.of(0)), 5);
      drips.add(drip);
      socket.on('close', () => clearInterval(drip));
    });
    try {
      const found = testResolver({ port, clock }).addresses(NAME);
      const outcome = found.catch((error: { code: string }) => error.code);
      await until(() => connected.length === 2);
      clock.advance(5_000);
      expect(await outcome).toBe('FAILED');
    } finally {
      for (const drip of drips) clearInterval(drip);
      udp.close();
      tcp.close();
    }
  });
});

function cut(query: Buffer, length: number): Buffer {
  const answer = dnsPacket.encode({ ...good(query), flags: dnsPacket.TRUNCATED_RESPONSE });
  return answer.subarray(0, length);
}

function loop(length: number): Answer[] {
  const name = (at: number): string => (at % length === 0 ? NAME : `alias${at % length}.test`);
  return Array.from({ length }, (_, at) => ({ type: 'CNAME', name: name(at), ttl: 60, data: name(at + 1) }));
}

function counting(answer: Buffer, count: number): Buffer {
  answer.writeUInt16BE(count, 6);
  return answer;
}

/** Makes the name of the record a pointer to itself. */
function pointing(answer: Buffer): Buffer {
  const at = 12 + NAME.length + 2 + 4;
  return Buffer.concat([answer.subarray(0, at), Buffer.of(0xc0, at), answer.subarray(at + NAME.length + 2)]);
}

describe('name servers', () => {
  const asked = (name: string) => dns.asked.filter((question) => question === `A ${name}`);

  test('asks the servers in order: the next one at once after an error, and after a second of silence', () => {
    expect(plannedTries({ nameservers: ['a', 'b'], timeoutMs: 5_000, attempts: 2 })).toEqual([
      { server: 'a', waitMs: 1_000 },
      { server: 'b', waitMs: 5_000 },
      { server: 'a', waitMs: 1_000 },
      { server: 'b', waitMs: 5_000 },
    ]);
  });

  test('never waits longer than 30 s in total for name servers', () => {
    const tries = plannedTries({ nameservers: ['a', 'b', 'c'], timeoutMs: 30_000, attempts: 5 });
    expect(tries.reduce((sum, { waitMs }) => sum + waitMs, 0)).toBe(30_000);
  });

  test.each([
    ['is not running', '127.0.0.2'],
    // A broadcast address is refused at once, as any address is while its network is unreachable.
    ['cannot be reached', '255.255.255.255'],
  ])('asks the next server without delay when the one before %s', async (_, first) => {
    dns.set(NAME, ['10.0.0.9']);
    const resolvConf = `nameserver ${first}\nnameserver 127.0.0.1\n`;
    const clock = new ManualClock();
    expect(await testResolver({ port: dns.port, resolvConf, clock }).addresses(NAME)).toEqual(['10.0.0.9']);
  });

  test('asks silent servers again, as often as resolv.conf says', async () => {
    dns.setBoth(NAME, 'silent');
    const clock = new ManualClock();
    const resolvConf = 'nameserver 127.0.0.1\noptions timeout:2 attempts:3\n';
    const outcome = testResolver({ port: dns.port, resolvConf, clock })
      .addresses(NAME)
      .catch((error: Error) => error);
    for (let round = 1; round <= 3; round += 1) {
      await until(() => asked(NAME).length === round);
      clock.advance(2_000);
    }
    expect(await outcome).toMatchObject({
      code: 'FAILED',
      cause: { message: '127.0.0.1 did not answer within 2000 ms' },
    });
    expect(asked(NAME)).toHaveLength(3);
  });
});

test('neither fails nor hangs while reading an answer, whatever a server sends', () => {
  const question = { name: NAME, type: 'A' } as const;
  const query = queryFor(question);
  const whole = dnsPacket.encode({ ...good(query), answers: [...loop(3), ...(good(query).answers ?? [])] });
  const change = fc.tuple(fc.nat(whole.length - 1), fc.nat(255));
  const kinds = new Set<string>();
  fc.assert(
    fc.property(
      fc.array(change, { maxLength: 6 }),
      fc.nat(whole.length),
      fc.uint8Array({ maxLength: 40 }),
      (changes, end, more) => {
        const data = Buffer.concat([whole.subarray(0, end), more]);
        for (const [at, byte] of changes) if (at < data.length) data[at] = byte;
        kinds.add(readAnswer(data, query, question).kind);
      },
    ),
    { numRuns: fuzzRuns(10_000) },
  );
  expect([...kinds].toSorted()).toEqual(['failed', 'other', 'records', 'truncated']);
});
