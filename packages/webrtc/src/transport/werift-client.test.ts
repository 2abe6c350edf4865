import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import * as timers from 'node:timers/promises';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import type { RTCIceServer, RtpPacket as Packet } from 'werift';
import { TcpAcceptor } from '../relay/tcp-acceptor.js';
import { chooseExtensions, chooseReceivedCodec, parseOffer, writeAnswer } from '../index.js';
import { Attribute, MessageClass, Method } from '../stun/constants.js';
import { StunMessage } from '../stun/message.js';
import { StunWriter } from '../stun/writer.js';
import type { MediaPort } from './api.js';

// werift's TURN client leaves its refresh timer (500 s) running when closed; it must not keep the process alive.
jest.unstable_mockModule('timers/promises', () => ({
  ...timers,
  setTimeout: (ms: number, value: unknown) => timers.setTimeout(ms, value, { ref: false }),
}));
const { MediaStreamTrack, RTCPeerConnection, RtpPacket } = await import('werift');
const { Closers, credentials, openRecorded, rtpPacket, serverCertificate, openPort, user } = await import(
  '../testing/port-fixture.js'
);

const closers = new Closers();
afterEach(() => closers.closeAll());

const OUTBOUND_SSRC = 0x0b10_0a11;

/** werift asks a public STUN server unless it is given another one. */
async function openStunServer(): Promise<number> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  socket.on('message', (datagram, { port }) => {
    const request = StunMessage.parse(datagram);
    if (request === undefined) return;
    const reply = new StunWriter(Method.binding, MessageClass.success, request.transactionId)
      .xorAddress(Attribute.xorMappedAddress, { bytes: Uint8Array.of(127, 0, 0, 1), port })
      .finish();
    socket.send(reply, port, '127.0.0.1');
  });
  closers.add(async () => {
    socket.close();
  });
  return socket.address().port;
}

async function call(port: MediaPort, servers: RTCIceServer[], relayed: boolean) {
  const recorded = openRecorded(port);
  const pc = new RTCPeerConnection({
    iceServers: servers,
    iceTransportPolicy: relayed ? 'relay' : 'all',
    iceUseIpv6: false,
    iceAdditionalHostAddresses: relayed ? [] : ['127.0.0.1'],
    bundlePolicy: 'max-bundle',
  });
  closers.add(() => pc.close());
  const track = new MediaStreamTrack({ kind: 'video' });
  pc.addTransceiver(track, { direction: 'sendonly' });
  const slot = pc.addTransceiver('video', { direction: 'recvonly' });
  const received = new Promise<Packet>((resolve) => {
    slot.onTrack.subscribe((incoming) => incoming.onReceiveRtp.subscribe((packet) => resolve(packet)));
  });
  await pc.setLocalDescription(await pc.createOffer());
  const offer = parseOffer(pc.localDescription?.sdp ?? '');
  const { iceUfrag, icePwd, fingerprint } = offer.transport;
  const ice = { ...credentials(1), remoteUfrag: iceUfrag, remotePwd: icePwd };
  recorded.transport.negotiate({ generation: 1, ice, fingerprint });
  const answer = writeAnswer({
    offer,
    sessionId: '1',
    version: 1,
    ice: { ufrag: ice.localUfrag, pwd: ice.localPwd },
    fingerprint: (await serverCertificate()).fingerprint,
    media: offer.media.map((media, index) => ({
      role:
        index === 0
          ? { type: 'receive', rids: [] }
          : { type: 'send', ssrc: OUTBOUND_SSRC, rtxSsrc: 2, cname: 'c', streamId: 's', trackId: 't' },
      codec: chooseReceivedCodec(media, 'vp8'),
      extensions: chooseExtensions(media, { audioLevel: false }),
    })),
  });
  const candidate = `a=candidate:1 1 UDP 2130706431 127.0.0.1 ${port.port} typ host\r\na=end-of-candidates\r\n`;
  const sdp = answer.replaceAll('a=setup:passive\r\n', `a=setup:passive\r\n${candidate}`);
  await pc.setRemoteDescription({ type: 'answer', sdp });
  const payloadType = chooseReceivedCodec(offer.media[1] as never, 'vp8')?.payloadType ?? 0;
  return { recorded, pc, track, received, payloadType };
}

async function proveMedia({
  recorded,
  pc,
  track,
  received,
  payloadType,
}: Awaited<ReturnType<typeof call>>): Promise<void> {
  await Promise.all([recorded.until('ice 1'), recorded.until('dtls')]);
  while (pc.connectionState !== 'connected') await pc.connectionStateChange.asPromise();
  track.writeRtp(rtpPacket(7, 'up').plain);
  await recorded.until('rtp 1');
  expect(RtpPacket.deSerialize(recorded.rtp[0] as Buffer).payload.toString()).toBe('up');

  const down = RtpPacket.deSerialize(rtpPacket(9, 'down').plain);
  down.header.ssrc = OUTBOUND_SSRC;
  down.header.payloadType = payloadType;
  expect(recorded.transport.sendRtp(down.serialize())).toBe(true);
  expect((await received).payload.toString()).toBe('down');
}

describe('werift’s peer connection as the client', () => {
  test('connects directly', async () => {
    const port = await openPort(closers);
    const stun = await openStunServer();
    const established = await call(port, [{ urls: `stun:127.0.0.1:${stun}` }], false);
    await proveMedia(established);
    expect(established.recorded.transport.pathState).toMatchObject({ relayed: false, protocol: 'udp' });
  }, 20_000);

  test('connects through the relay over UDP', async () => {
    const port = await openPort(closers);
    const urls = `turn:127.0.0.1:${port.port}?transport=udp`;
    const established = await call(port, [{ urls, username: user.username, credential: user.password }], true);
    await proveMedia(established);
    expect(established.recorded.transport.pathState).toMatchObject({ relayed: true, protocol: 'udp' });
  }, 20_000);

  test('connects through the relay over TCP', async () => {
    const nonceSecret = randomBytes(32);
    const port = await openPort(closers, { nonceSecret });
    const acceptor = await TcpAcceptor.open({ listenAddress: '127.0.0.1', port: 0, nonceSecret, route: () => port });
    closers.add(() => acceptor.close());
    const urls = `turn:127.0.0.1:${acceptor.port}?transport=tcp`;
    const established = await call(port, [{ urls, username: user.username, credential: user.password }], true);
    await proveMedia(established);
    expect(established.recorded.transport.pathState).toMatchObject({ relayed: true, protocol: 'tcp' });
  }, 20_000);
});
