import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from '@jest/globals';
import { addressBytes, addressText } from '@bloom/net';
import { createCertificate } from '../dtls/certificate.js';
import { WebrtcError } from '../errors.js';
import { createPacketSealer, type SrtpSendSession } from '../index.js';
import { Attribute, MessageClass } from '../stun/constants.js';
import {
  Closers,
  clientCertificate,
  credentials,
  exchangeMedia,
  openRecorded,
  type Recorded,
  rtpPacket,
  openClient,
  openPort,
  user,
} from '../testing/port-fixture.js';
import { TestClient } from '../testing/test-client.js';
import type { MediaPort } from './api.js';
import { openMediaPort } from './open-media-port.js';

const closers = new Closers();
afterEach(() => closers.closeAll());

interface Joined {
  port: MediaPort;
  recorded: Recorded;
  client: TestClient;
}

/** Opens a transport with its first credentials, and a client that knows them. */
async function prepare(port?: MediaPort, relay = user): Promise<Joined> {
  const mediaPort = port ?? (await openPort(closers));
  const recorded = openRecorded(mediaPort, {}, relay);
  const client = await openClient(closers, mediaPort);
  const { fingerprint } = await clientCertificate();
  recorded.transport.negotiate({ generation: 1, ice: credentials(1), fingerprint });
  return { port: mediaPort, recorded, client };
}

async function joinRelayed(): Promise<Joined> {
  const joined = await prepare();
  await joined.client.allocate(user);
  await joined.client.permit();
  await joined.client.bindChannel();
  await joined.client.check(credentials(1));
  await joined.client.handshake();
  await joined.recorded.until('dtls');
  return joined;
}

describe('media over loopback', () => {
  test('gives a directly connected client ICE, DTLS and SRTP in both directions', async () => {
    const { recorded, client } = await prepare();
    const answer = await client.check(credentials(1));
    const mapped = answer.xorAddress(Attribute.xorMappedAddress);
    expect(answer.verifyIntegrity(credentials(1).localPwd) && answer.fingerprintHolds).toBe(true);
    expect(addressText(mapped?.bytes ?? new Uint8Array(4))).toBe(client.wire.local.address);
    expect(mapped?.port).toBe(client.wire.local.port);

    await client.handshake();
    await recorded.until('dtls');
    await exchangeMedia(recorded, client, 1);
    expect(recorded.events.slice(0, 2)).toEqual(['ice 1', 'dtls']);
    expect(recorded.transport.pathState).toMatchObject({ ice: 'connected', dtls: 'connected', relayed: false });
    expect(recorded.transport.counters).toMatchObject({ bindingRequestsReceived: 1, bindingResponsesSent: 1 });
  });

  test.each([
    ['of either IP family', { secondListenAddress: '::1' }, ['127.0.0.1', '::1']],
    ['of several own addresses', { moreListenAddresses: ['127.0.0.2', '::1'] }, ['127.0.0.1', '127.0.0.2', '::1']],
  ] as const)('serves clients %s on one port', async (_title, more, addresses) => {
    const port = await openPort(closers, more);
    for (const [index, address] of addresses.entries()) {
      const recorded = openRecorded(port, {}, { ...user, username: `1790000000:${address}` });
      const client = await openClient(closers, { address, port: port.port });
      const { fingerprint } = await clientCertificate();
      recorded.transport.negotiate({ generation: 1, ice: credentials(index + 1), fingerprint });
      const answer = await client.check(credentials(index + 1));
      const seen = address === '::1' ? '::1' : client.wire.local.address;
      expect(answer.xorAddress(Attribute.xorMappedAddress)?.bytes).toEqual(addressBytes(seen));
      await client.handshake();
      await recorded.until('dtls');
      await exchangeMedia(recorded, client, 1);
      expect(recorded.transport.pathState).toMatchObject({ ice: 'connected', remoteAddress: seen });
    }
  });

  test.each(['send', 'channel'] as const)('gives a relayed client (%s) ICE, DTLS and SRTP both ways', async (mode) => {
    const { port, recorded, client } = await prepare();
    const allocated = await client.allocate(user);
    expect(allocated.messageClass).toBe(MessageClass.success);
    expect(allocated.verifyIntegrity(client.key)).toBe(true);
    expect(allocated.xorAddress(Attribute.xorRelayedAddress)).toEqual(client.server);
    expect((await client.permit()).messageClass).toBe(MessageClass.success);
    if (mode === 'channel') expect((await client.bindChannel()).messageClass).toBe(MessageClass.success);

    const checked = await client.check(credentials(1));
    expect(checked.xorAddress(Attribute.xorMappedAddress)).toEqual(client.server);
    await client.handshake();
    await recorded.until('dtls');
    await exchangeMedia(recorded, client, 1);
    expect(recorded.transport.pathState).toMatchObject({ relayed: true, protocol: 'udp', generation: 1 });
    expect(port.stats().allocations).toBe(1);
  });

  test("lets a check for another transport take a client's path only once that client is gone", async () => {
    const { port, recorded, client } = await prepare();
    await client.check(credentials(1));
    await client.handshake();
    await recorded.until('dtls');
    const other = openRecorded(port, {}, { username: '1900000000:other', password: 'cA==' });
    const { fingerprint } = await clientCertificate();
    other.transport.negotiate({ generation: 1, ice: credentials(9), fingerprint });

    await expect(client.check(credentials(9))).rejects.toThrow('no answer');
    await exchangeMedia(recorded, client, 1);
    expect(other.transport.pathState.remotePort).toBeUndefined();

    recorded.transport.close();
    await client.check(credentials(9));
    expect(other.transport.pathState.remotePort).toBe(client.wire.local.port);
  });

  test('starts DTLS before a pair is nominated', async () => {
    const { recorded, client } = await prepare();
    await client.check(credentials(1), false);
    await client.handshake();
    await recorded.until('dtls');
    expect(recorded.transport.sendRtcp(Buffer.from('80c90001cafebabe', 'hex'))).toBe(false);
    await client.check(credentials(1), true);
    await exchangeMedia(recorded, client, 1);
    expect(recorded.events.slice(0, 2)).toEqual(['dtls', 'ice 1']);
  });

  test('allocates at the port that clients reach behind a port mapping, and relays to no other one', async () => {
    const port = await openPort(closers, { advertisedPorts: { offset: 1, listed: new Map() } });
    const { client } = await prepare(port);
    const allocated = await client.allocate(user);
    const relayed = allocated.xorAddress(Attribute.xorRelayedAddress);
    expect(relayed).toEqual({ ...client.server, port: port.port + 1 });
    expect((await client.permit(relayed)).messageClass).toBe(MessageClass.success);
    expect((await client.bindChannel(0x4001, client.server)).messageClass).toBe(MessageClass.error);
    expect((await client.bindChannel(0x4002, relayed)).messageClass).toBe(MessageClass.success);
  });

  test('uses a channel bound in mid-call from then on', async () => {
    const { recorded, client } = await prepare();
    await client.allocate(user);
    await client.permit();
    await client.check(credentials(1));
    await client.handshake();
    await recorded.until('dtls');
    await exchangeMedia(recorded, client, 1);
    expect(recorded.transport.sink.headroom).toBe(0);
    await client.bindChannel();
    expect(recorded.transport.sink.headroom).toBe(4);
    await exchangeMedia(recorded, client, 2);
  });
});

describe('the packet sealer', () => {
  test.each(['direct', 'channel'] as const)('sends sealed packets through the transport’s sink (%s)', async (mode) => {
    const { recorded, client } = await prepare();
    if (mode === 'channel') {
      await client.allocate(user);
      await client.permit();
      await client.bindChannel();
    }
    await client.check(credentials(1));
    await client.handshake();
    await recorded.until('dtls');

    const sealer = createPacketSealer();
    const { plain } = rtpPacket(65_535, 'common payload');
    const session = recorded.transport.sendSession as SrtpSendSession;
    const stream = sealer.openStream(session, 0x1234_5678, recorded.transport.sink);
    sealer.begin(plain, 12, plain.length);
    for (const index of [65_535, 65_536, 65_537]) {
      const at = sealer.reserve();
      plain.copy(sealer.arena, at, 0, 12);
      sealer.arena.writeUInt16BE(index & 0xffff, at + 2);
      expect(sealer.commit(stream, 12, 0, 0, index)).toBe(true);
    }
    sealer.end();
    for (const sequence of [65_535, 0, 1]) {
      const opened = client.srtp?.decrypt(await client.next()) as Buffer;
      expect(opened.readUInt16BE(2)).toBe(sequence);
      expect(opened.subarray(12).toString()).toBe('common payload');
    }
    expect(sealer.counters).toMatchObject({ sealed: 3, sinkFaults: 0 });
  });
});

describe('an ICE restart', () => {
  test('keeps the old path in both directions until the new allocation is nominated', async () => {
    const { port, recorded, client } = await joinRelayed();
    const oldPort = client.wire.local.port;
    await exchangeMedia(recorded, client, 1);
    recorded.transport.negotiate({ generation: 2, ice: credentials(2), fingerprint: client.certificate.fingerprint });
    await exchangeMedia(recorded, client, 2);

    const back = await client.move();
    await client.allocate(user);
    await client.permit();
    await client.bindChannel();
    await client.check(credentials(2), false);
    expect(recorded.transport.pathState).toMatchObject({ generation: 1, remotePort: oldPort });
    await exchangeMedia(recorded, client, 3);

    await client.check(credentials(2), true);
    expect(recorded.events.filter((event) => event.startsWith('ice'))).toEqual(['ice 1', 'ice 2']);
    expect(recorded.transport.pathState).toMatchObject({ generation: 2, remotePort: client.wire.local.port });
    await exchangeMedia(recorded, client, 4);

    // The old credentials are no longer valid, and the old allocation may be freed.
    back();
    await expect(client.check(credentials(1), true)).rejects.toThrow('no answer');
    expect(port.stats().allocations).toBe(2);
    expect(recorded.transport.pathState.generation).toBe(2);
  });

  test('keeps media running over ten restarts in a row, and frees all their allocations on close', async () => {
    const { port, recorded, client } = await joinRelayed();
    for (let generation = 2; generation <= 11; generation++) {
      recorded.transport.negotiate({
        generation,
        ice: credentials(generation),
        fingerprint: client.certificate.fingerprint,
      });
      await client.move();
      await client.allocate(user);
      await client.permit();
      await client.bindChannel();
      await client.check(credentials(generation));
      await exchangeMedia(recorded, client, generation);
    }
    expect(port.stats().allocations).toBe(11);
    recorded.transport.close();
    expect(port.stats()).toMatchObject({ allocations: 0, transports: 0 });
  });

  test('completes a restart that changes nothing at once', async () => {
    const { recorded, client } = await joinRelayed();
    recorded.transport.negotiate({ generation: 2, ice: credentials(1), fingerprint: client.certificate.fingerprint });
    await recorded.until('ice 2');
    await exchangeMedia(recorded, client, 1);
  });
});

describe('faults of one client', () => {
  test('fails the transport with the reason when its certificate was not announced', async () => {
    const { port, recorded } = await prepare();
    const client = await TestClient.open(port, await createCertificate());
    closers.add(() => client.close());
    await client.check(credentials(1));
    client.handshake().catch(() => undefined);
    await recorded.until('failed: the DTLS certificate does not match the announced fingerprint');
    expect(recorded.transport.pathState.dtls).toBe('failed');
    expect(recorded.events).not.toContain('dtls');
  });

  test('fails only its own transport when a handler throws', async () => {
    const port = await openPort(closers);
    const { recorded, client } = await prepare(port);
    await client.check(credentials(1));
    const failures: string[] = [];
    const other = openRecorded(
      port,
      {
        onRtp: () => {
          throw new Error('boom');
        },
        onFailed: (reason) => failures.push(reason),
      },
      { username: '1:other', password: 'x' },
    );
    const second = await openClient(closers, port);
    const { fingerprint } = await clientCertificate();
    other.transport.negotiate({ generation: 1, ice: credentials(77), fingerprint });
    await second.check(credentials(77));
    await Promise.all([client.handshake(), second.handshake()]);
    await Promise.all([recorded.until('dtls'), other.until('dtls')]);

    const { header, payload } = rtpPacket(1, 'x');
    second.sendPacket(second.srtp?.encrypt(payload, header) as Buffer);
    await exchangeMedia(recorded, client, 1);
    expect(failures).toEqual(['an internal fault while media was handled']);
    expect(port.stats().dropped.handler_error).toBe(1);
    expect(other.transport.sendRtp(rtpPacket(2, 'y').plain)).toBe(false);
  });

  test("a client's checks cannot reach another transport through its allocation", async () => {
    const port = await openPort(closers);
    const { client } = await prepare(port);
    const other = openRecorded(port, {}, { username: '1:other', password: 'x' });
    const { fingerprint } = await clientCertificate();
    other.transport.negotiate({ generation: 1, ice: credentials(77), fingerprint });
    await client.allocate(user);
    await client.permit();
    await expect(client.check(credentials(77))).rejects.toThrow('no answer');
    expect(other.events).toEqual([]);
    expect(port.stats().dropped.unauthenticated).toBe(1);
  });
});

describe('counting drops', () => {
  test('counts packets that are replayed, forged, unsolicited, early or of no known protocol by reason', async () => {
    const { port, recorded, client } = await prepare();
    const stranger = await openClient(closers, port);
    await client.check(credentials(1));
    client.sendPacket(rtpPacket(1, 'too early').plain);
    await client.handshake();
    await recorded.until('dtls');
    await exchangeMedia(recorded, client, 1);

    const { header, payload } = rtpPacket(103, 'twice');
    const sealed = client.srtp?.encrypt(payload, header) as Buffer;
    const forged = Buffer.from(sealed);
    forged[forged.length - 1] = (forged[forged.length - 1] ?? 0) ^ 1;
    for (const packet of [forged, sealed, sealed]) client.sendPacket(packet);
    stranger.sendPacket(sealed);
    for (const first of [5, 100, 200]) stranger.sendPacket(Buffer.concat([Buffer.of(first), randomBytes(40)]));
    stranger.sendPacket(Buffer.concat([Buffer.of(0x40, 1, 0, 4), randomBytes(4)]));
    await recorded.until('rtp 2');
    await exchangeMedia(recorded, client, 2);
    await stranger.challenge(user);
    expect(port.stats().dropped).toMatchObject({
      no_keys: 1,
      replayed: 1,
      unauthenticated: 1,
      unknown_source: 1,
      malformed: 3,
      relay_unbound: 1,
      handler_error: 0,
    });
    expect(recorded.events.filter((event) => event.startsWith('refused'))).toEqual([
      'refused unauthenticated',
      'refused replayed',
    ]);
  });
});

describe('the port', () => {
  test('takes the first free port of its range, and rejects if none is free', async () => {
    const first = await openPort(closers);
    const range = { min: first.port, max: first.port };
    await expect(openPort(closers, { portRange: range })).rejects.toMatchObject({
      code: 'NO_FREE_PORT',
      message: expect.stringContaining('JF_WEBRTC_TURN_PORT_RANGE'),
    });
    const next = await openPort(closers, { portRange: { min: first.port, max: Math.min(65_535, first.port + 50) } });
    expect(next.port).toBeGreaterThan(first.port);
  });

  test('rejects invalid addresses, duplicate user names, and calls after it is closed', async () => {
    const port = await openPort(closers);
    await expect(openPort(closers, { advertisedAddress: 'example.org' })).rejects.toMatchObject({
      code: 'BAD_ADDRESS',
    });
    await expect(openPort(closers, { listenAddress: '203.0.113.77' })).rejects.toMatchObject({
      code: 'BAD_ADDRESS',
      message: expect.stringMatching(/203\.0\.113\.77 \(JF_WEBRTC_TURN_LISTEN_IP\): .*EADDRNOTAVAIL/),
    });
    openRecorded(port);
    expect(() => openRecorded(port)).toThrow(WebrtcError);
    await port.close();
    await port.close();
    expect(() => openRecorded(port, {}, { username: 'x', password: 'y' })).toThrow('is closed');
  });

  test('treats the relay user of a closed transport as a stranger', async () => {
    const { port, recorded, client } = await joinRelayed();
    expect(port.hasRelayUser(user.username)).toBe(true);
    recorded.transport.close();
    recorded.transport.close();
    expect(port.hasRelayUser(user.username)).toBe(false);
    expect(port.stats()).toMatchObject({ transports: 0, allocations: 0 });
    expect((await client.allocate(user)).errorCode).toBe(401);
    expect(recorded.transport.sendRtp(rtpPacket(1, 'x').plain)).toBe(false);
    expect(recorded.transport.pathState.ice).toBe('closed');
  });

  test('leaks no timer, socket or allocation over 200 transports, every tenth closed in its handshake', async () => {
    const port = await openMediaPort({
      listenAddress: '127.0.0.1',
      portRange: { min: 0, max: 0 },
      advertisedAddress: '127.0.0.1',
      certificate: await clientCertificate(),
    });
    const client = await openClient(closers, port);
    const { fingerprint } = await clientCertificate();
    const count = (): Record<string, number> => {
      const counts: Record<string, number> = {};
      for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
      return counts;
    };
    // One real handshake, to record the client's hello.
    let hello = Buffer.alloc(0);
    const send = client.wire.send;
    client.wire.send = (datagram) => {
      if (datagram[0] === 22 && hello.length === 0) hello = Buffer.from(datagram);
    };
    client.handshake().catch(() => undefined);
    client.wire.send = send;
    // Lets the client's own retransmission timer expire.
    if (client.dtls) client.dtls.dtls.flight = 255;
    expect(hello.length).toBeGreaterThan(50);

    const before = count();
    for (let i = 0; i < 200; i++) {
      const relay = { username: `1:${i}`, password: 'x' };
      const { transport } = openRecorded(port, {}, relay);
      transport.negotiate({ generation: 1, ice: credentials(i), fingerprint });
      await client.check(credentials(i));
      if (i % 10 === 0) {
        client.sendPacket(hello);
        // Handshakes run in later turns of the event loop.
        while (transport.pathState.dtls !== 'connecting') await new Promise((resolve) => setImmediate(resolve));
      }
      transport.close();
    }
    const more = (): string[] =>
      Object.entries(count()).flatMap(([kind, number]) => (number > (before[kind] ?? 0) ? [kind] : []));
    // The client's retransmission timer ends by itself; leaks of a closed transport would remain.
    const deadline = performance.now() + 5000;
    while (more().length > 0 && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 50));
    expect(more()).toEqual([]);
    expect(port.stats()).toMatchObject({ transports: 0, allocations: 0 });
    await port.close();
    const again = await openPort(closers, { portRange: { min: port.port, max: port.port } });
    expect(again.port).toBe(port.port);
  }, 30_000);
});
