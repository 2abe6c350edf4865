import { expect } from '@jest/globals';
import { RtpHeader, RtpPacket } from 'werift';
import { createCertificate, type DtlsCertificate } from '../dtls/certificate.js';
import type {
  IceCredentials,
  MediaPort,
  MediaPortOptions,
  PeerTransport,
  PeerTransportHandlers,
  RelayUser,
} from '../transport/api.js';
import { openMediaPort } from '../transport/open-media-port.js';
import { TestClient } from './test-client.js';

const certificates: Promise<[DtlsCertificate, DtlsCertificate]> = Promise.all([
  createCertificate(),
  createCertificate(),
]);

/** Closes everything opened by a test, last opened first. */
export class Closers {
  readonly #list: (() => Promise<void>)[] = [];

  add(close: () => Promise<void>): void {
    this.#list.push(close);
  }

  async closeAll(): Promise<void> {
    for (const close of this.#list.splice(0).toReversed()) await close();
  }
}

export async function serverCertificate(): Promise<DtlsCertificate> {
  return (await certificates)[0];
}

export async function clientCertificate(): Promise<DtlsCertificate> {
  return (await certificates)[1];
}

export const user: RelayUser = { username: '1790000000:peer-1', password: 'c2VjcmV0' };

export function credentials(generation: number): IceCredentials {
  return {
    localUfrag: `srv${generation}`,
    localPwd: `server-password-number-${generation}`,
    remoteUfrag: `cli${generation}`,
    remotePwd: `client-password-number-${generation}`,
  };
}

export async function openPort(closers: Closers, options: Partial<MediaPortOptions> = {}): Promise<MediaPort> {
  const port = await openMediaPort({
    listenAddress: '127.0.0.1',
    portRange: { min: 0, max: 0 },
    advertisedAddress: '127.0.0.1',
    certificate: await serverCertificate(),
    ...options,
  });
  closers.add(() => port.close());
  return port;
}

export async function openClient(closers: Closers, port: Pick<MediaPort, 'address' | 'port'>): Promise<TestClient> {
  const client = await TestClient.open(port, await clientCertificate());
  closers.add(() => client.close());
  return client;
}

export interface Recorded {
  transport: PeerTransport;
  events: string[];
  /** Resolves with the event once it has happened. */
  until(event: string): Promise<void>;
  rtp: Buffer[];
  rtcp: Buffer[];
}

export function openRecorded(port: MediaPort, overrides: Partial<PeerTransportHandlers> = {}, relay = user): Recorded {
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
      onRefused: (reason) => note(`refused ${reason}`),
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

export function rtpPacket(
  sequenceNumber: number,
  payload: string,
): { header: RtpHeader; payload: Buffer; plain: Buffer } {
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

/** A receiver report without report blocks. */
export const REPORT = Buffer.from('80c90001cafebabe', 'hex');

export async function exchangeMedia(recorded: Recorded, client: TestClient, round: number): Promise<void> {
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
