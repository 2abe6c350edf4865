import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { afterEach, describe, expect, test } from '@jest/globals';
import { TrustedProxies } from '@bloom/net';
import { AwakeClock } from '@bloom/time';
import { ManualClock } from '@bloom/time/testing';
import { createCertificate } from '../dtls/certificate.js';
import { MessageClass } from '../stun/constants.js';
import {
  Closers,
  clientCertificate,
  credentials,
  exchangeMedia,
  openRecorded,
  type Recorded,
  openPort,
  user,
} from '../testing/port-fixture.js';
import { TestClient } from '../testing/test-client.js';
import type { MediaPort } from '../transport/api.js';
import { TcpAcceptor, TLS_HANDSHAKES, type TcpAcceptorOptions } from './tcp-acceptor.js';

const closers = new Closers();
afterEach(() => closers.closeAll());

interface Setup {
  port: MediaPort;
  acceptor: TcpAcceptor;
  recorded: Recorded;
}

async function setUp(limits: Partial<TcpAcceptorOptions> = {}): Promise<Setup> {
  const nonceSecret = randomBytes(32);
  const port = await openPort(closers, { nonceSecret });
  const acceptor = await TcpAcceptor.open({
    listenAddress: '127.0.0.1',
    port: 0,
    nonceSecret,
    route: (username) => (port.hasRelayUser(username) ? port : undefined),
    graceMs: 0,
    ...limits,
  });
  closers.add(() => acceptor.close());
  const recorded = openRecorded(port);
  const { fingerprint } = await clientCertificate();
  recorded.transport.negotiate({ generation: 1, ice: credentials(1), fingerprint });
  return { port, acceptor, recorded };
}

/** Opens a connection and sends nothing on it. */
async function silent({ acceptor }: Setup, localAddress: string): Promise<Socket> {
  const socket = connect({ port: acceptor.port, host: '127.0.0.1', localAddress });
  closers.add(async () => void socket.destroy());
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

async function tcpClient({ port, acceptor }: Setup): Promise<TestClient> {
  const client = await TestClient.openTcp(acceptor.port, port, await clientCertificate());
  closers.add(() => client.close());
  return client;
}

async function setUpTls(limits: Partial<TcpAcceptorOptions> = {}): Promise<Setup> {
  const { keyPem: key, certPem: cert } = await clientCertificate();
  const context = createSecureContext({ key, cert });
  return await setUp({ tls: () => context, ...limits });
}

async function tlsClient({ port, acceptor }: Setup): Promise<TestClient> {
  const client = await TestClient.openTls(acceptor.port, port, await clientCertificate());
  closers.add(() => client.close());
  return client;
}

/** Resolves with the bytes received before the server closed the connection. */
async function hungUp(port: number, bytes: Buffer): Promise<Buffer> {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk)).on('error', () => undefined);
  socket.write(bytes);
  // Not `once`, which would reject at a reset.
  await new Promise((closed) => socket.once('close', closed));
  return Buffer.concat(chunks);
}

describe('TURN over TCP', () => {
  test.each(['send', 'channel'] as const)('carries ICE, DTLS and media both ways (%s)', async (mode) => {
    const setup = await setUp();
    const client = await tcpClient(setup);
    const { recorded, port } = setup;
    expect((await client.allocate(user)).messageClass).toBe(MessageClass.success);
    await client.permit();
    if (mode === 'channel') await client.bindChannel();
    await client.check(credentials(1));
    await client.handshake();
    await recorded.until('dtls');
    for (let round = 1; round <= 3; round++) await exchangeMedia(recorded, client, round);
    expect(recorded.transport.pathState).toMatchObject({ relayed: true, protocol: 'tcp' });
    expect(port.stats().allocations).toBe(1);
  });

  test('frees an allocation when its connection ends', async () => {
    const setup = await setUp();
    const client = await tcpClient(setup);
    await client.allocate(user);
    expect(setup.port.stats().allocations).toBe(1);
    expect(setup.acceptor.connections).toBe(1);
    await client.close();
    while (setup.acceptor.connections > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(setup.port.stats().allocations).toBe(0);
  });

  test("ends a transport's connections when it closes", async () => {
    const setup = await setUp();
    const client = await tcpClient(setup);
    await client.allocate(user);
    setup.recorded.transport.close();
    while (setup.acceptor.connections > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(setup.port.stats().allocations).toBe(0);
  });

  test('challenges a wrong password again and ignores an unknown user', async () => {
    const setup = await setUp();
    const wrong = await tcpClient(setup);
    expect((await wrong.allocate({ ...user, password: 'guess' })).errorCode).toBe(401);
    const unknown = await tcpClient(setup);
    await expect(unknown.allocate({ username: '1:nobody', password: 'x' })).rejects.toThrow('no answer');
    expect(setup.port.stats().allocations).toBe(0);
  });

  test.each([
    ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['a TLS hello', Buffer.from('16030100', 'hex')],
    ['unsolicited channel data', Buffer.from('4001000461626364', 'hex')],
    ['a binding request', Buffer.from('000100002112a442000000000000000000000000', 'hex')],
  ])('closes a connection that sends %s without a reply', async (_what, bytes) => {
    const { acceptor } = await setUp();
    expect(await hungUp(acceptor.port, bytes)).toEqual(Buffer.alloc(0));
  });

  test('drops the oldest silent connections of a full port to make room for a client', async () => {
    const setup = await setUp({ maxConnections: 8 });
    const strangers = [];
    for (let i = 0; i < 8; i++) strangers.push(await silent(setup, `127.0.0.${i + 2}`));
    while (setup.acceptor.connections < 8) await new Promise((resolve) => setImmediate(resolve));
    const ended = once(strangers[0] as Socket, 'close');
    const client = await tcpClient(setup);
    expect((await client.allocate(user)).messageClass).toBe(MessageClass.success);
    await ended;
    expect(strangers.map(({ closed }) => closed)).toEqual([true, ...Array.from({ length: 7 }, () => false)]);
    expect(setup.acceptor.connections).toBe(8);
  });

  test('connections that name a user without its password lock no client out', async () => {
    const setup = await setUp({ maxPerNetwork: 3 });
    const claimants = [];
    for (let i = 0; i < 3; i++) {
      const claimant = await tcpClient(setup);
      expect((await claimant.allocate({ ...user, password: 'guess' })).errorCode).toBe(401);
      claimants.push(claimant);
    }
    const client = await tcpClient(setup);
    expect((await client.allocate(user)).messageClass).toBe(MessageClass.success);
    expect(setup.acceptor.connections).toBe(3);
  });

  test('lets one address fill only its own share and never end a connection that has a user', async () => {
    const setup = await setUp({ maxPerNetwork: 3 });
    const client = await tcpClient(setup);
    await client.allocate(user);
    const elsewhere = await silent(setup, '127.0.0.2');
    const strangers = [];
    for (let i = 0; i < 4; i++) strangers.push(await silent(setup, '127.0.0.1'));
    await once(strangers[0] as Socket, 'close');
    expect(elsewhere.closed).toBe(false);
    expect(strangers[1]?.closed).toBe(false);
    expect(strangers[2]?.closed).toBe(false);
    expect(setup.port.stats().allocations).toBe(1);
    expect(setup.acceptor.connections).toBe(5);
  });

  test('never drops a connection younger than two round trips for a newer one', async () => {
    const awake = new ManualClock();
    const setup = await setUp({ maxPerNetwork: 2, graceMs: 2_000, awake });
    const waiting = [await silent(setup, '127.0.0.1'), await silent(setup, '127.0.0.1')];
    while (setup.acceptor.connections < 2) await new Promise((resolve) => setImmediate(resolve));
    await once(await silent(setup, '127.0.0.1'), 'close');
    expect(waiting.filter(({ closed }) => closed)).toEqual([]);
    awake.advance(2_000);
    const client = await tcpClient(setup);
    expect((await client.allocate(user)).messageClass).toBe(MessageClass.success);
  });

  test('ends no connection that has yet to name its user because of a pause of the process', async () => {
    const base = new ManualClock();
    const setup = await setUp({ awake: new AwakeClock(base) });
    const waiting = await silent(setup, '127.0.0.1');
    while (setup.acceptor.connections < 1) await new Promise((resolve) => setImmediate(resolve));
    base.leap(40_000);
    const client = await tcpClient(setup);
    await client.allocate(user);
    expect(waiting.closed).toBe(false);
    base.advance(12_000);
    await once(waiting, 'close');
  });

  test('limits clients and silent connections separately, to the same number each', async () => {
    const setup = await setUp({ maxPerNetwork: 1 });
    const client = await tcpClient(setup);
    expect((await client.allocate(user)).messageClass).toBe(MessageClass.success);
    const waiting = await silent(setup, '127.0.0.1');
    while (setup.acceptor.connections < 2) await new Promise((resolve) => setImmediate(resolve));
    expect(waiting.closed).toBe(false);
    const second = await tcpClient(setup);
    await second.allocate(user).catch(() => undefined);
    while (setup.acceptor.connections > 1) await new Promise((resolve) => setImmediate(resolve));
    expect(setup.port.stats().allocations).toBe(1);
  });

  test("behind a load balancer, counts connections by the client's network in the PROXY header", async () => {
    const setup = await setUp({ maxPerNetwork: 1, proxies: new TrustedProxies(['127.0.0.0/8']) });
    const proxied = async (client: string): Promise<Socket> => {
      const socket = await silent(setup, '127.0.0.1');
      socket.write(`PROXY TCP4 ${client} 192.0.2.1 4000 3478\r\n`);
      return socket;
    };
    const first = await proxied('203.0.113.1');
    const other = await proxied('203.0.113.2');
    while (setup.acceptor.connections < 2) await new Promise((resolve) => setImmediate(resolve));
    await proxied('203.0.113.1');
    await once(first, 'close');
    expect(other.closed).toBe(false);
  });

  test('closes a connection without the PROXY header when JF_PROXY_PROTOCOL is set', async () => {
    const { acceptor } = await setUp({ proxies: new TrustedProxies(['127.0.0.1']) });
    expect(await hungUp(acceptor.port, Buffer.from('000100002112a442', 'hex'))).toEqual(Buffer.alloc(0));
  });

  test('rejects when the port is taken', async () => {
    const { acceptor } = await setUp();
    const again = TcpAcceptor.open({
      listenAddress: '127.0.0.1',
      port: acceptor.port,
      nonceSecret: randomBytes(32),
      route: () => undefined,
    });
    await expect(again).rejects.toMatchObject({
      code: 'NO_FREE_PORT',
      message: expect.stringMatching(/JF_WEBRTC_TURN_TCP_PORT.*EADDRINUSE/),
    });
  });
});

describe('TURN over TLS', () => {
  test('carries ICE, DTLS and media both ways', async () => {
    const setup = await setUpTls();
    const client = await tlsClient(setup);
    const { recorded, acceptor } = setup;
    expect((await client.allocate(user)).messageClass).toBe(MessageClass.success);
    await client.permit();
    await client.bindChannel();
    await client.check(credentials(1));
    await client.handshake();
    await recorded.until('dtls');
    for (let round = 1; round <= 3; round++) await exchangeMedia(recorded, client, round);
    expect(recorded.transport.pathState).toMatchObject({ relayed: true, protocol: 'tcp' });
    await client.close();
    while (acceptor.connections > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(setup.port.stats().allocations).toBe(0);
  });

  test('counts connections without a TLS handshake against their network and drops them for newer ones', async () => {
    const setup = await setUpTls({ maxPerNetwork: 3 });
    const strangers = [];
    for (let i = 0; i < 3; i++) strangers.push(await silent(setup, '127.0.0.1'));
    while (setup.acceptor.connections < 3) await new Promise((resolve) => setImmediate(resolve));
    const ended = once(strangers[0] as Socket, 'close');
    const client = await tlsClient(setup);
    expect((await client.allocate(user)).messageClass).toBe(MessageClass.success);
    await ended;
    expect(strangers[1]?.closed).toBe(false);
    expect(strangers[2]?.closed).toBe(false);
    expect(setup.acceptor.connections).toBe(3);
  });

  test('limits TLS handshakes per source', async () => {
    const setup = await setUpTls({ clock: () => 0 });
    const hello = async (): Promise<Socket> => {
      const socket = await silent(setup, '127.0.0.2');
      socket.write(Buffer.from('1603010200', 'hex'));
      return socket;
    };
    const begun = [];
    for (let i = 0; i < TLS_HANDSHAKES.burst; i++) begun.push(await hello());
    await once(await hello(), 'close');
    expect(begun.filter(({ closed }) => closed)).toEqual([]);
    await tlsClient(setup);
  });

  test("silent connections use up none of their network's handshakes", async () => {
    const now = performance.timeOrigin + performance.now();
    const setup = await setUpTls({ clock: () => now });
    for (let i = 0; i < TLS_HANDSHAKES.burst; i++) (await silent(setup, '127.0.0.1')).destroy();
    const client = await tlsClient(setup);
    expect((await client.allocate(user)).messageClass).toBe(MessageClass.success);
  });

  test('closes a connection that sends an HTTP request', async () => {
    const { acceptor } = await setUpTls();
    await hungUp(acceptor.port, Buffer.from('GET / HTTP/1.1\r\n\r\n'));
    while (acceptor.connections > 0) await new Promise((resolve) => setImmediate(resolve));
  });

  test('ends an incomplete TLS handshake after its time limit', async () => {
    const awake = new ManualClock();
    const { acceptor } = await setUpTls({ awake });
    const ended = hungUp(acceptor.port, Buffer.from('160301ff00', 'hex'));
    while (acceptor.connections === 0) await new Promise((resolve) => setImmediate(resolve));
    awake.advance(10_000);
    await ended;
    expect(acceptor.connections).toBe(0);
  });

  test('serves new connections with a new certificate', async () => {
    const certificates = [await clientCertificate(), await createCertificate()] as const;
    const contexts = certificates.map(({ keyPem: key, certPem: cert }) => createSecureContext({ key, cert }));
    let current = contexts[0] as SecureContext;
    const { acceptor } = await setUp({ tls: () => current });
    const fingerprint = async (): Promise<string> => {
      const socket = connectTls({ port: acceptor.port, host: '127.0.0.1', rejectUnauthorized: false });
      closers.add(async () => void socket.destroy());
      await once(socket, 'secureConnect');
      return socket.getPeerCertificate().fingerprint256;
    };
    expect(await fingerprint()).toBe(certificates[0].fingerprint.value);
    current = contexts[1] as SecureContext;
    expect(await fingerprint()).toBe(certificates[1].fingerprint.value);
  });

  test('names the variable when the port is taken', async () => {
    const { acceptor } = await setUp();
    const { keyPem: key, certPem: cert } = await clientCertificate();
    const options = { listenAddress: '127.0.0.1', port: acceptor.port, nonceSecret: randomBytes(32) };
    const tls = (): SecureContext => createSecureContext({ key, cert });
    await expect(TcpAcceptor.open({ ...options, tls, route: () => undefined })).rejects.toMatchObject({
      message: expect.stringMatching(/TLS relay port .*JF_WEBRTC_TURN_TLS_PORT.*EADDRINUSE/),
    });
  });
});
