import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { RtpHeader, RtpPacket } from 'werift';
import { createCertificate, type DtlsCertificate } from '../dtls/certificate.js';
import { Attribute, MessageClass } from '../stun/constants.js';
import { addressText } from '../stun/address.js';
import { TestClient } from '../testing/test-client.js';
import type { IceCredentials, MediaPort, PeerTransport, PeerTransportHandlers, RelayUser } from './api.js';
import { openMediaPort } from './open-media-port.js';

let certificate: DtlsCertificate;
let clientCertificate: DtlsCertificate;
const closers: (() => Promise<void>)[] = [];

beforeAll(async () => {
  [certificate, clientCertificate] = await Promise.all([createCertificate(), createCertificate()]);
});
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

const user: RelayUser = { username: '1790000000:peer-1', password: 'c2VjcmV0' };

function credentials(generation: number): IceCredentials {
  return {
    localUfrag: `srv${generation}`,
    localPwd: `server-password-number-${generation}`,
    remoteUfrag: `cli${generation}`,
    remotePwd: `client-password-number-${generation}`,
  };
}

async function startPort(): Promise<MediaPort> {
  const port = await openMediaPort({
    listenAddress: '127.0.0.1',
    portRange: { min: 0, max: 0 },
    advertisedAddress: '127.0.0.1',
    certificate,
  });
  closers.push(() => port.close());
  return port;
}

async function startClient(port: MediaPort): Promise<TestClient> {
  const client = await TestClient.open(port, clientCertificate);
  closers.push(() => client.close());
  return client;
}

interface Recorded {
  transport: PeerTransport;
  events: string[];
  /** Resolves with the event once it has happened. */
  until(event: string): Promise<void>;
  rtp: Buffer[];
  rtcp: Buffer[];
}

function openRecorded(port: MediaPort, overrides: Partial<PeerTransportHandlers> = {}, relay = user): Recorded {
  const events: string[] = [];
  const waiting = new Map<string, () => void>();
  const note = (event: string): void => {
    events.push(event);
    waiting.get(event)?.();
  };
  const rtp: Buffer[] = [];
  const rtcp: Buffer[] = [];
  const transport = port.openTransport({
    id: relay.username,
    relay,
    handlers: {
      onRtp: (buffer, start, end) => {
        rtp.push(buffer.subarray(start, end));
        note(`rtp ${rtp.length}`);
      },
      onRtcp: (buffer, start, end) => {
        rtcp.push(buffer.subarray(start, end));
        note(`rtcp ${rtcp.length}`);
      },
      onIceConnected: (generation) => note(`ice ${generation}`),
      onDtlsConnected: () => note('dtls'),
      onFailed: (reason) => note(`failed: ${reason}`),
      onSilent: () => note('silent'),
      ...overrides,
    },
  });
  const until = (event: string): Promise<void> =>
    events.includes(event) ? Promise.resolve() : new Promise((resolve) => waiting.set(event, resolve));
  return { transport, events, until, rtp, rtcp };
}

function rtpPacket(sequenceNumber: number, payload: string): { header: RtpHeader; payload: Buffer; plain: Buffer } {
  const header = new RtpHeader({
    payloadType: 96,
    sequenceNumber,
    timestamp: 90_000,
    ssrc: 0x1234_5678,
    marker: true,
    extension: false,
    padding: false,
  });
  const body = Buffer.from(payload);
  return { header, payload: body, plain: new RtpPacket(header, body).serialize() };
}

/** A receiver report without blocks. */
const REPORT = Buffer.from('80c90001cafebabe', 'hex');

async function exchangeMedia(recorded: Recorded, client: TestClient, round: number): Promise<void> {
  const sent = rtpPacket(100 + round, `from the client ${round}`);
  const rtpCount = recorded.rtp.length + 1;
  client.sendPacket(client.srtp?.encrypt(sent.payload, sent.header) as Buffer);
  await recorded.until(`rtp ${rtpCount}`);
  expect(recorded.rtp.at(-1)).toEqual(sent.plain);

  const rtcpCount = recorded.rtcp.length + 1;
  client.sendPacket(client.srtcp?.encrypt(REPORT) as Buffer);
  await recorded.until(`rtcp ${rtcpCount}`);
  expect(recorded.rtcp.at(-1)).toEqual(REPORT);

  const answered = rtpPacket(500 + round, `from the server ${round}`);
  expect(recorded.transport.sendRtp(answered.plain)).toBe(true);
  const sealed = await client.next((packet) => (packet[1] ?? 0) < 192 || (packet[1] ?? 0) > 223);
  expect(client.srtp?.decrypt(sealed)).toEqual(answered.plain);

  expect(recorded.transport.sendRtcp(REPORT)).toBe(true);
  const report = await client.next((packet) => packet[1] === 201);
  expect(client.srtcp?.decrypt(report)).toEqual(REPORT);
}

describe('media over loopback', () => {
  test('a client that reaches us straight gets ICE, DTLS and SRTP both ways', async () => {
    const port = await startPort();
    const recorded = openRecorded(port);
    const client = await startClient(port);
    const ice = credentials(1);
    recorded.transport.negotiate({ generation: 1, ice, fingerprint: clientCertificate.fingerprint });

    const answer = await client.check(ice);
    const local = client.wire.local;
    const mapped = answer.xorAddress(Attribute.xorMappedAddress);
    expect(answer.verifyIntegrity(ice.localPwd) && answer.fingerprintHolds).toBe(true);
    expect([addressText(mapped?.bytes ?? new Uint8Array(4)), mapped?.port]).toEqual([local.address, local.port]);

    await client.handshake();
    await recorded.until('dtls');
    await exchangeMedia(recorded, client, 1);
    expect(recorded.events.slice(0, 2)).toEqual(['ice 1', 'dtls']);
    expect(recorded.transport.pathState).toMatchObject({ ice: 'connected', dtls: 'connected', relayed: false });
  });

  test.each(['send', 'channel'] as const)('a relayed client (%s) gets the same', async (mode) => {
    const port = await startPort();
    const recorded = openRecorded(port);
    const client = await startClient(port);
    const ice = credentials(1);
    recorded.transport.negotiate({ generation: 1, ice, fingerprint: clientCertificate.fingerprint });

    const allocated = await client.allocate(user);
    expect(allocated.messageClass).toBe(MessageClass.success);
    expect(allocated.verifyIntegrity(client.key)).toBe(true);
    expect(allocated.xorAddress(Attribute.xorRelayedAddress)).toEqual(client.server);
    expect((await client.permit()).messageClass).toBe(MessageClass.success);
    if (mode === 'channel') expect((await client.bindChannel()).messageClass).toBe(MessageClass.success);

    expect((await client.check(ice)).messageClass).toBe(MessageClass.success);
    await client.handshake();
    await recorded.until('dtls');
    await exchangeMedia(recorded, client, 1);
    expect(recorded.transport.pathState).toMatchObject({ relayed: true, protocol: 'udp', generation: 1 });
    expect(port.stats().allocations).toBe(1);
  });
});
