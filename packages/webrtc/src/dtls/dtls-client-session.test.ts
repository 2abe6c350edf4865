import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { createCertificate, type DtlsCertificate, identityOf } from './certificate.js';
import { HANDSHAKE_TIMEOUT_MS } from './dtls-association.js';
import { SERVER_FLIGHT } from './client-handshake.js';
import { DtlsClientSession } from './dtls-client-session.js';
import { DtlsSession } from './dtls-session.js';
import { handshakeMessage, HandshakeType } from './handshake-messages.js';
import type { SrtpKeyMaterial } from './key-schedule.js';
import { ContentType, plainRecord, readRecords } from './records.js';
import { u16, vector } from './wire.js';

let ours: DtlsCertificate;
let theirs: DtlsCertificate;
let stranger: DtlsCertificate;

beforeAll(async () => {
  [ours, theirs, stranger] = await Promise.all([createCertificate(), createCertificate(), createCertificate()]);
});

/** A server that also says what ours never says. */
class Server extends DtlsSession {
  sealed(type: number, plain: Buffer): Buffer {
    return this.records.seal(type, plain);
  }
}

interface Options {
  /** What the server shows, and signs with. */
  certificate?: DtlsCertificate;
  /** Changes the server's datagrams on their way. */
  toClient?: (datagram: Buffer, count: number) => Buffer[];
  /** Numbers of the client's datagrams that are lost, from 1. */
  lost?: readonly number[];
}

/** Our client and our server, connected by an in-memory wire on which datagrams travel at once. */
class Pair {
  readonly client: DtlsClientSession;
  readonly server: Server;
  readonly data: string[] = [];
  clientKeys: SrtpKeyMaterial | undefined;
  serverKeys: SrtpKeyMaterial | undefined;
  failure: string | undefined;
  connected = 0;
  closed = 0;
  sent = 0;
  nowMs = 1_000;
  #answered = 0;

  constructor({ certificate = theirs, toClient = (datagram) => [datagram], lost = [] }: Options = {}) {
    const events = { onFailed: (): void => undefined, onClosed: (): number => (this.closed += 1) };
    this.client = new DtlsClientSession(ours, {
      ...events,
      send: (datagram) => {
        this.sent += 1;
        if (!lost.includes(this.sent)) this.server.receive(Buffer.from(datagram), this.nowMs);
      },
      onConnected: (keys) => {
        this.connected += 1;
        this.clientKeys = keys;
      },
      onFailed: (reason) => (this.failure = reason),
      onData: (plain) => this.data.push(`server ${plain.toString()}`),
    });
    this.server = new Server(certificate, {
      ...events,
      send: (datagram) => {
        this.#answered += 1;
        for (const one of toClient(Buffer.from(datagram), this.#answered)) this.client.receive(one, this.nowMs);
      },
      onConnected: (keys) => (this.serverKeys = keys),
      onData: (plain) => this.data.push(`client ${plain.toString()}`),
    });
    this.client.expectFingerprint(theirs.fingerprint);
    this.server.expectFingerprint(ours.fingerprint);
  }

  /** Lets time pass until both sides have given up. */
  wait(ms = HANDSHAKE_TIMEOUT_MS): this {
    for (const end = this.nowMs + ms; this.nowMs < end; ) {
      this.nowMs += 250;
      for (const side of [this.client, this.server]) side.sweep(this.nowMs);
    }
    return this;
  }

  start(): this {
    this.client.start(this.nowMs);
    return this;
  }

  /** The server's keys, as the client names them. */
  get mirrored(): SrtpKeyMaterial | undefined {
    if (this.serverKeys === undefined) return undefined;
    const { localKey, localSalt, remoteKey, remoteSalt } = this.serverKeys;
    return { localKey: remoteKey, localSalt: remoteSalt, remoteKey: localKey, remoteSalt: localSalt };
  }
}

/** A client whose server does not answer, and its hellos. */
function alone(): {
  client: DtlsClientSession;
  hellos: Buffer[];
  ask: (cookie: string, nowMs: number, seq?: number) => void;
} {
  const hellos: Buffer[] = [];
  const client = new DtlsClientSession(ours, {
    send: (datagram) => hellos.push(datagram),
    onConnected: () => undefined,
    onFailed: () => undefined,
    onClosed: () => undefined,
    onData: () => undefined,
  });
  client.expectFingerprint(theirs.fingerprint);
  client.start(0);
  return { client, hellos, ask: (cookie, nowMs, seq) => void client.receive(askFor(cookie, seq), nowMs) };
}

/** A datagram in which a server asks for its cookie, as anybody can. */
function askFor(cookie: string, messageSeq = 0): Buffer {
  const body = [u16(0xfeff), vector(1, Buffer.from(cookie))];
  return plainRecord(ContentType.handshake, 0, handshakeMessage(HandshakeType.helloVerifyRequest, messageSeq, ...body));
}

const finishedWith = (text: string): Buffer => handshakeMessage(HandshakeType.finished, 5, Buffer.from(text));

/** The messages of a server's first flight, each in two fragments, the last one first. */
function scattered(flight: Buffer): Buffer[] {
  return readRecords(flight)!
    .flatMap(({ fragment }) => {
      const [head, body] = [fragment.subarray(0, 12), fragment.subarray(12)];
      const middle = body.length >> 1;
      return [body.subarray(0, middle), body.subarray(middle)].map((part, i) => {
        const header = Buffer.from(head);
        header.writeUIntBE(i * middle, 6, 3);
        header.writeUIntBE(part.length, 9, 3);
        return plainRecord(ContentType.handshake, i, Buffer.concat([header, part]));
      });
    })
    .toReversed();
}

describe('the client side of DTLS', () => {
  test('agrees on the same keys as a server, passes data both ways, and closes', () => {
    const pair = new Pair().start();
    expect(pair.clientKeys).toBeDefined();
    expect(pair.clientKeys).toEqual(pair.mirrored);
    pair.client.send(Buffer.from('hello'));
    pair.server.send(Buffer.from('hi'));
    expect(pair.data).toEqual(['client hello', 'server hi']);
    pair.client.close();
    expect(pair.closed).toBe(1);
  });

  test('says nothing before its path is open, and hello once', () => {
    const pair = new Pair();
    expect(pair.sent).toBe(0);
    pair.start().start();
    expect(pair.sent).toBe(2);
  });

  test.each([1, 2])('survives the loss of its datagram %i', (lost) => {
    expect(new Pair({ lost: [lost] }).start().wait(5_000).client.state).toBe('connected');
  });

  test.each([1, 2])("survives the loss of the server's datagram %i", (lost) => {
    const toClient = (datagram: Buffer, count: number): Buffer[] => (count === lost ? [] : [datagram]);
    expect(new Pair({ toClient }).start().wait(5_000).client.state).toBe('connected');
  });

  test('refuses a server whose certificate is not the announced one', () => {
    const pair = new Pair({ certificate: stranger }).start();
    expect(pair.sent).toBe(1);
    pair.wait();
    expect(pair.failure).toContain('the DTLS certificate does not match the announced fingerprint');
    expect(pair.clientKeys).toBeUndefined();
  });

  test('refuses a server that shows the announced certificate without holding its key', () => {
    const pair = new Pair({ certificate: { ...theirs, keyPem: stranger.keyPem } }).start().wait();
    expect(pair.failure).toContain('the server does not hold the key of its DTLS certificate');
    expect(pair.clientKeys).toBeUndefined();
  });

  test('takes the messages of a flight in fragments and in any order', () => {
    const toClient = (datagram: Buffer, count: number): Buffer[] => (count === 1 ? scattered(datagram) : [datagram]);
    const pair = new Pair({ toClient }).start();
    expect(pair.clientKeys).toBeDefined();
    expect(pair.clientKeys).toEqual(pair.mirrored);
  });

  test.each([
    ['another suite', '00c02b00 00c02c00', 'the server does not support TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256'],
    [
      'another SRTP profile',
      '000e000500020001 000e000500020007',
      'the server does not support SRTP_AES128_CM_HMAC_SHA1_80',
    ],
    ['no extended master secret', '00170000 00180000', 'the server does not support the extended master secret'],
    ['no use for our signatures', '000c0403 000c0203', 'the server does not accept ECDSA with SHA-256'],
    ['another group', '03001d20 03001820', 'the server sent no usable key'],
    ['a message missing', '0e0000000004 0e0000000003', 'the server sent messages in the wrong order'],
  ])('refuses a server with %s, and finally gives the reason', (_with, change, reason) => {
    const [from, to] = change.split(' ').map((text) => Buffer.from(text, 'hex'));
    const toClient = (datagram: Buffer): Buffer[] => {
      const at = datagram.indexOf(from!);
      if (at >= 0) to!.copy(datagram, at);
      return [datagram];
    };
    const pair = new Pair({ toClient }).start().wait();
    expect(pair.failure).toContain(reason);
    expect(pair.clientKeys).toBeUndefined();
  });

  describe('while somebody else answers its hello first', () => {
    /** Connects behind a forger, whose datagrams come before the server's first. */
    const behind = (forged: readonly Buffer[]): Pair =>
      new Pair({ toClient: (datagram, at) => (at === 1 ? [...forged, datagram] : [datagram]) }).start();
    const message = (type: number, seq: number, text = ''): Buffer =>
      plainRecord(ContentType.handshake, seq, handshakeMessage(type, seq, Buffer.from(text)));

    test.each<[string, () => Buffer[]]>([
      ['messages in a wrong place', () => Array.from({ length: 100 }, () => message(HandshakeType.serverHelloDone, 0))],
      [
        'flights without the announced certificate',
        () => Array.from({ length: 100 }, () => SERVER_FLIGHT.map((type, seq) => message(type, seq, 'x'))).flat(),
      ],
      ['requests for a cookie', () => Array.from({ length: 100 }, (_, i) => askFor(`cookie ${i}`))],
      ['an encrypted message', () => [Buffer.from(`16fefd00010000000000010020${'00'.repeat(32)}`, 'hex')]],
    ])('connects despite %s', (_what, forged) => {
      const pair = behind([Buffer.concat(forged())]);
      expect(pair.clientKeys).toBeDefined();
      expect(pair.clientKeys).toEqual(pair.mirrored);
    });

    test('verifies the signatures of 8 flights with the announced certificate, and then of one per second', () => {
      let old: Buffer = Buffer.alloc(0);
      new Pair({ toClient: (datagram) => ((old = datagram), []) }).start();
      const replayed = (count: number): Pair => behind(Array.from({ length: count }, () => Buffer.from(old)));
      expect(replayed(7).client.state).toBe('connected');
      const pair = replayed(8);
      expect(pair.client.state).toBe('connecting');
      expect(pair.wait(1_000).client.state).toBe('connected');
    });

    test('returns the last cookie it is asked for in a hello of the same number, 8 at once and then one per second', () => {
      const { hellos, ask } = alone();
      ask('forged', 1);
      ask('genuine', 1);
      expect(hellos.map((hello) => [hello.readUInt16BE(17), hello.includes('genuine')])).toEqual([
        [0, false],
        [1, false],
        [1, true],
      ]);
      for (let i = 0; i < 100; i++) ask(`another ${i}`, 1);
      expect(hellos).toHaveLength(9);
      for (let i = 0; i < 100; i++) ask(`one more ${i}`, 1_001);
      expect(hellos).toHaveLength(10);
    });
  });

  test('fails if the announced fingerprint changes later', () => {
    const pair = new Pair().start();
    pair.client.expectFingerprint(theirs.fingerprint);
    expect(pair.failure).toBeUndefined();
    pair.client.expectFingerprint(stranger.fingerprint);
    expect(pair.failure).toBe('the DTLS fingerprint changed during the session');
  });

  test('keeps the association for another hash of the same certificate', () => {
    const pair = new Pair().start();
    const value = createHash('sha512').update(identityOf(theirs).der).digest('hex');
    pair.client.expectFingerprint({ algorithm: 'SHA-512', value });
    expect(pair.client.state).toBe('connected');
  });

  test('fails if another fingerprint is announced between the flight of the server and its Finished', () => {
    let finished: Buffer = Buffer.alloc(0);
    const toClient = (datagram: Buffer, count: number): Buffer[] =>
      count === 1 ? [datagram] : ((finished = datagram), []);
    const pair = new Pair({ toClient }).start();
    pair.client.expectFingerprint(stranger.fingerprint);
    pair.client.receive(finished, pair.nowMs);
    expect(pair.failure).toBe('the DTLS certificate does not match the announced fingerprint');
    expect(pair.clientKeys).toBeUndefined();
  });

  test('fails for good on a wrong Finished, even if the right one follows in the same datagram', () => {
    const pair: Pair = new Pair({
      toClient: (datagram, count) =>
        count === 1
          ? [datagram]
          : [Buffer.concat([pair.server.sealed(ContentType.handshake, finishedWith('twelve bytes')), datagram])],
    });
    pair.start();
    expect(pair.failure).toBe('the DTLS handshake was altered on its way');
    expect(pair.client.state).toBe('failed');
    expect(pair.connected).toBe(0);
  });

  test('takes a record of data once', () => {
    const pair = new Pair().start();
    const record = pair.server.sealed(ContentType.applicationData, Buffer.from('hi'));
    const reasons = [1, 2].map(() => pair.client.receive(Buffer.from(record), pair.nowMs));
    expect(reasons).toEqual([undefined, 'replayed']);
    expect(pair.data).toEqual(['server hi']);
  });

  test('stays closed when a repeated Finished follows close_notify in the same datagram', () => {
    let finished: Buffer = Buffer.alloc(0);
    const pair = new Pair({ toClient: (datagram) => [(finished = datagram)] }).start();
    pair.client.receive(Buffer.concat([pair.server.sealed(ContentType.alert, Buffer.of(1, 0)), finished]), pair.nowMs);
    expect([pair.client.state, pair.closed, pair.connected]).toEqual(['closed', 1, 1]);
  });

  test('returns a cookie once, although it is asked for again or later', () => {
    const { hellos, ask } = alone();
    for (const seq of [0, 0, 1, 2]) ask('a cookie', 1, seq);
    expect(hellos.map((hello) => hello.includes('a cookie'))).toEqual([false, true]);
  });

  test('does not answer a flight whose random, certificate, key or signature was changed on its way', () => {
    fc.assert(
      fc.property(fc.nat(2_000), fc.integer({ min: 1, max: 255 }), (n, mask) => {
        const toClient = (flight: Buffer): Buffer[] => {
          const [hello, certificate, exchange] = readRecords(flight)!.map(({ fragment }) => fragment.subarray(12));
          // Views of the flight. Before the certificate there are two lengths.
          const parts = [hello!.subarray(2, 34), certificate!.subarray(6), exchange!];
          const part = parts[n % parts.length]!;
          const place = Math.floor(n / parts.length) % part.length;
          part[place] = (part[place] ?? 0) ^ mask;
          return [flight];
        };
        expect(new Pair({ toClient }).start().sent).toBe(1);
      }),
      { numRuns: fuzzRuns(200) },
    );
  });

  test('never throws on datagrams that were changed on their way, and connects only with the keys of the server', () => {
    const change = fc.tuple(fc.nat(2_000), fc.integer({ min: 1, max: 255 }), fc.nat(1));
    fc.assert(
      fc.property(change, ([at, mask, which]) => {
        const pair = new Pair({
          toClient: (datagram, count) => {
            const place = 25 + (at % (datagram.length - 25));
            if (count === which + 1) datagram[place] = (datagram[place] ?? 0) ^ mask;
            return [datagram];
          },
        }).start();
        // The second datagram is the server's Finished.
        expect(which === 0 ? [undefined, pair.mirrored] : [undefined]).toContainEqual(pair.clientKeys);
      }),
      { numRuns: fuzzRuns(200) },
    );
  });
});

const present = spawnSync('openssl', ['version']).error === undefined;
(present ? test : test.skip)(
  'connects to OpenSSL, which wants a cookie back, although somebody else has asked for another one [needs openssl]',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bloom-dtls-'));
    const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    writeFileSync(certFile, theirs.certPem);
    writeFileSync(keyFile, theirs.keyPem);
    const args = 's_server -dtls1_2 -listen -accept 127.0.0.1:0 -use_srtp SRTP_AES128_CM_SHA1_80 -Verify 1'.split(' ');
    const server = spawn('openssl', [...args, '-cert', certFile, '-key', keyFile]);
    const socket = createSocket('udp4').bind(0, '127.0.0.1');
    let timer: NodeJS.Timeout | undefined;
    try {
      await once(socket, 'listening');
      let cookies = 0;
      await new Promise<void>((heard, failed) => {
        let [output, errors, port] = ['', '', 0];
        const client: DtlsClientSession = new DtlsClientSession(ours, {
          send: (datagram) => socket.send(datagram, port, '127.0.0.1'),
          onConnected: () => client.send(Buffer.from('hello OpenSSL\n')),
          onFailed: (reason) => failed(new Error(reason)),
          onClosed: () => undefined,
          onData: () => undefined,
        });
        client.expectFingerprint(theirs.fingerprint);
        socket.on('message', (datagram) => {
          if (datagram[13] === HandshakeType.helloVerifyRequest) cookies += 1;
          client.receive(datagram, performance.now());
        });
        server.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
        server.once('exit', () => failed(new Error(`OpenSSL has ended: ${errors}`)));
        server.stdout.on('data', (chunk: Buffer) => {
          output += chunk.toString();
          if (output.includes('hello OpenSSL\n')) heard();
          const bound = /ACCEPT \S+:(\d+)\n/.exec(output)?.[1];
          if (bound === undefined || port > 0) return;
          port = Number(bound);
          client.start(performance.now());
          client.receive(askFor('forged'), performance.now());
          timer = setInterval(() => client.sweep(performance.now()), 250);
        });
      });
      expect(cookies).toBeGreaterThan(0);
    } finally {
      clearInterval(timer);
      server.kill();
      socket.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
