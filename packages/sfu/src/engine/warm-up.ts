import { getEnvironmentData } from 'node:worker_threads';
import { silentLog } from '@bloom/log';
import {
  asReceived,
  createPacketSealer,
  type PeerTransport,
  type PeerTransportHandlers,
  SrtpSendSession,
} from '@bloom/webrtc';
import { MediaContext } from '../context.js';
import { ForwardingRoom } from '../forwarding/room.js';
import type { ExtensionIds, InboundTrack, NegotiatedCodec, OutboundSlot } from '../media-engine.js';

const SUBSCRIBERS = 12;
const FRAMES = 1200;
const EXTENSIONS: ExtensionIds = { mid: 1, transportCc: 2 };
const CODEC: NegotiatedCodec = {
  name: 'vp8',
  payloadType: 96,
  clockRate: 90_000,
  rtxPayloadType: 97,
  feedback: ['nack', 'nack pli', 'transport-cc'],
};

/**
 * True where a test that starts many processes or threads has called `setEnvironmentData('bloom.cold', true)`:
 * a warm-up is half of such a start, for code that hardly runs there.
 */
export const startsCold = (): boolean => getEnvironmentData('bloom.cold') === true;

/**
 * Runs synthetic packets through the real path, sealing included, before the first room. Otherwise a cold worker delays
 * real media by tens of milliseconds in its first seconds, while code is compiled. Takes about 0.2 s, touches no socket
 * and leaves nothing behind. Returns the number of forwarded packets.
 */
export function warmUp(): number {
  let nowMs = 1_000_000;
  let seed = 1;
  const random = (): number => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0);
  const handlers: PeerTransportHandlers[] = [];
  const session = new SrtpSendSession({ masterKey: Buffer.alloc(16, 1), masterSalt: Buffer.alloc(14, 2) });
  const port = {
    openTransport: (options: { id: string; handlers: PeerTransportHandlers }): PeerTransport => {
      handlers.push(options.handlers);
      return idleTransport(options.id, session);
    },
  };
  const sealer = createPacketSealer();
  const context = new MediaContext({ now: () => nowMs, random, log: silentLog }, port, sealer);
  const room = new ForwardingRoom(context, 'warm-up', () => undefined);
  const ice = { localUfrag: '', localPwd: '', remoteUfrag: '', remotePwd: '' };
  const fingerprint = { algorithm: 'sha-256', value: '' };
  const relay = { username: '', password: '' };
  const open = (peerId: string): void => {
    room.apply({ type: 'openTransport', peerId, transport: 1, relay });
  };
  const negotiate = (peerId: string, inbound: InboundTrack[], outbound: OutboundSlot[]): void => {
    const negotiation = { generation: 1, ice, fingerprint, inbound, outbound };
    room.apply({ type: 'negotiate', peerId, negotiation });
  };

  open('publisher');
  const track = { trackId: 'track', kind: 'video', codec: CODEC, extensions: EXTENSIONS, rids: [] } as const;
  negotiate('publisher', [{ ...track, mid: '0', bitratesBps: {}, ssrc: 1 }], []);
  for (let i = 0; i < SUBSCRIBERS; i++) {
    const slot = { mid: '0', kind: 'video', ssrc: 10 + i * 2, rtxSsrc: 11 + i * 2, codec: CODEC } as const;
    open(`subscriber-${i}`);
    negotiate(`subscriber-${i}`, [], [{ ...slot, extensions: EXTENSIONS, trackId: 'track' }]);
  }
  for (const each of handlers) {
    each.onIceConnected(1);
    each.onDtlsConnected();
  }
  for (let i = 0; i < FRAMES; i++) {
    const packet = asReceived(vp8Packet(i));
    handlers[0]!.onRtp(packet, 0, packet.length, nowMs);
    nowMs += 1;
    if (i % 20 === 0) room.tick(nowMs);
  }
  room.close();
  return context.packetsForwarded;
}

function vp8Packet(index: number): Buffer {
  const packet = Buffer.alloc(12 + 8 + 6 + (index % 3 === 0 ? 300 : 1100));
  packet[0] = 0x90;
  packet[1] = 0x80 | CODEC.payloadType;
  packet.writeUInt16BE(1000 + index, 2);
  packet.writeUInt32BE(index * 3000, 4);
  packet.writeUInt32BE(1, 8);
  // One extension block of four bytes: the transport-wide sequence number.
  packet.writeUInt32BE(0xbede0001, 12);
  packet[16] = (EXTENSIONS.transportCc! << 4) | 1;
  packet.writeUInt16BE(index, 17);
  packet[20] = 0x90;
  packet[21] = 0xf0;
  packet.writeUInt16BE(0x8000 | index, 22);
  packet[24] = index;
  packet[25] = 1;
  packet[26] = index % 100 === 0 ? 0 : 1;
  return packet;
}

/** A transport without a network. */
function idleTransport(id: string, sendSession: SrtpSendSession): PeerTransport {
  return {
    id,
    pathState: { ice: 'connected', dtls: 'connected', generation: 1, relayed: false, protocol: 'udp', secure: false },
    counters: {
      packetsReceived: 0,
      bytesReceived: 0,
      packetsSent: 0,
      bytesSent: 0,
      bindingRequestsReceived: 0,
      bindingResponsesSent: 0,
    },
    sendSession,
    sink: { headroom: 0, send: () => true },
    watchPackets: () => undefined,
    negotiate: () => undefined,
    sendRtp: () => true,
    sendRtcp: () => true,
    sendData: () => true,
    inTurn: () => false,
    close: () => undefined,
  };
}
