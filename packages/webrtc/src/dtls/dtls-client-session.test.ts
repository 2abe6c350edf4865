import { spawn, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { createCertificate, type DtlsCertificate } from './certificate.js';
import { HANDSHAKE_TIMEOUT_MS } from './dtls-association.js';
import { DtlsClientSession } from './dtls-client-session.js';
import { DtlsSession } from './dtls-session.js';
import { handshakeMessage, HandshakeType } from './handshake-messages.js';
import type { SrtpKeyMaterial } from './key-schedule.js';
import { ContentType, plainRecord } from './records.js';
import { u16, vector } from './wire.js';

let ours: DtlsCertificate;
let theirs: DtlsCertificate;
let stranger: DtlsCertificate;

beforeAll(async () => {
  [ours, theirs, stranger] = await Promise.all([createCertificate(), createCertificate(), createCertificate()]);
});

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
  readonly server: DtlsSession;
  readonly data: string[] = [];
  clientKeys: SrtpKeyMaterial | undefined;
  serverKeys: SrtpKeyMaterial | undefined;
  failure: string | undefined;
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
      onConnected: (keys) => (this.clientKeys = keys),
      onFailed: (reason) => (this.failure = reason),
      onData: (plain) => this.data.push(`server ${plain.toString()}`),
    });
    this.server = new DtlsSession(certificate, {
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
}

describe('the client side of DTLS', () => {
  test('agrees on the same keys as a server, passes data both ways, and closes', () => {
    const pair = new Pair().start();
    const { localKey, localSalt, remoteKey, remoteSalt } = pair.serverKeys!;
    expect(pair.clientKeys).toEqual({
      localKey: remoteKey,
      localSalt: remoteSalt,
      remoteKey: localKey,
      remoteSalt: localSalt,
    });
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
    const pair = new Pair({ certificate: stranger }).start().wait();
    expect(pair.failure).toContain('the DTLS certificate does not match the announced fingerprint');
    expect(pair.clientKeys).toBeUndefined();
  });

  test('refuses a server that shows the announced certificate without holding its key', () => {
    const pair = new Pair({ certificate: { ...theirs, keyPem: stranger.keyPem } }).start().wait();
    expect(pair.failure).toContain('the server does not hold the key of its DTLS certificate');
    expect(pair.clientKeys).toBeUndefined();
  });

  test('connects although somebody else answers its hello first, and examines 16 such answers', () => {
    let examined = 0;
    const forged = (count: number): Buffer[] =>
      Array.from({ length: count }, () =>
        plainRecord(ContentType.handshake, examined++, handshakeMessage(HandshakeType.serverHelloDone, 0)),
      );
    const withForged = (count: number): Pair =>
      new Pair({ toClient: (datagram, at) => (at === 1 ? [...forged(count), datagram] : [datagram]) }).start();
    expect(withForged(15).client.state).toBe('connected');
    expect(withForged(16).client.state).toBe('connecting');
  });

  test('fails if the announced fingerprint changes later', () => {
    const pair = new Pair().start();
    pair.client.expectFingerprint(theirs.fingerprint);
    expect(pair.failure).toBeUndefined();
    pair.client.expectFingerprint(stranger.fingerprint);
    expect(pair.failure).toBe('the DTLS fingerprint changed during the session');
  });

  test('returns a cookie once, and asks no further', () => {
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
    const cookie = Buffer.from('a cookie');
    for (const at of [0, 1, 2]) {
      const request = handshakeMessage(HandshakeType.helloVerifyRequest, at, u16(0xfeff), vector(1, cookie));
      client.receive(plainRecord(ContentType.handshake, at, request), 1);
    }
    expect(hellos.map((hello) => hello.includes(cookie))).toEqual([false, true]);
  });

  test('never throws, and never connects, on datagrams that were changed on their way', () => {
    const change = fc.tuple(fc.nat(2_000), fc.integer({ min: 1, max: 255 }), fc.nat(1));
    fc.assert(
      fc.property(change, ([at, mask, which]) => {
        const pair = new Pair({
          toClient: (datagram, count) => {
            const place = 25 + (at % (datagram.length - 25));
            if (count === which + 1) datagram[place] = (datagram[place] ?? 0) ^ mask;
            return count > which + 1 ? [] : [datagram];
          },
        }).start();
        expect(pair.clientKeys).toBeUndefined();
      }),
      { numRuns: fuzzRuns(200) },
    );
  });
});

const present = spawnSync('openssl', ['version']).error === undefined;
(present ? test : test.skip)('connects to OpenSSL, which wants a cookie back [needs openssl]', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-dtls-'));
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(certFile, theirs.certPem);
  writeFileSync(keyFile, theirs.keyPem);
  const free = createSocket('udp4').bind(0, '127.0.0.1');
  await once(free, 'listening');
  const { port } = free.address();
  free.close();
  const args = `s_server -dtls1_2 -listen -port ${port} -use_srtp SRTP_AES128_CM_SHA1_80 -Verify 1 -quiet`.split(' ');
  const server = spawn('openssl', [...args, '-cert', certFile, '-key', keyFile]);
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  let cookies = 0;
  const said = await new Promise<string>((heard, failed) => {
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
    server.stdout.on('data', (chunk: Buffer) => heard(chunk.toString()));
    client.start(performance.now());
    // The server may not listen yet.
    const timer = setInterval(() => client.sweep(performance.now()), 250);
    server.once('exit', () => clearInterval(timer));
  });
  server.kill();
  socket.close();
  rmSync(folder, { recursive: true, force: true });
  expect(said).toBe('hello OpenSSL\n');
  expect(cookies).toBe(1);
});
