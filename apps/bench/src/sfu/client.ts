/** Both ends of the load: werift peer connections with real ICE, DTLS and SRTP, each on one UDP socket. */
import type { Socket } from 'node:dgram';
import type { RtcpPacket } from 'werift';
import {
  MediaStreamTrack,
  RTCPeerConnection,
  RTCRtpCodecParameters,
  RtpHeader,
  RtpPacket,
  useAbsSendTime,
  useAudioLevelIndication,
  useSdesMid,
  useTransportWideCC,
} from 'werift';
import { startStunServer } from '../network/stun-server.js';
import { address } from './private-network.js';

/** A STUN server in this process: otherwise werift asks a public one and waits for it. */
export const iceServers = [{ urls: await startStunServer() }];

export type Kind = 'audio' | 'video';

/** Creates a connection with Chromium's SFU features: transport-wide feedback, RTX and header extensions. */
export function connection(): RTCPeerConnection {
  const feedback = [{ type: 'transport-cc' }];
  const repair = [{ type: 'nack' }, { type: 'nack', parameter: 'pli' }, { type: 'ccm', parameter: 'fir' }];
  const extensions = () => [useSdesMid(), useTransportWideCC(), useAbsSendTime()];
  return new RTCPeerConnection({
    iceServers,
    iceUseIpv6: false,
    iceInterfaceAddresses: { udp4: address },
    codecs: {
      video: [
        new RTCRtpCodecParameters({
          mimeType: 'video/VP8',
          clockRate: 90_000,
          payloadType: 96,
          rtcpFeedback: [...repair, ...feedback],
        }),
        new RTCRtpCodecParameters({ mimeType: 'video/rtx', clockRate: 90_000, payloadType: 97, parameters: 'apt=96' }),
      ],
      audio: [
        new RTCRtpCodecParameters({
          mimeType: 'audio/opus',
          clockRate: 48_000,
          channels: 2,
          payloadType: 111,
          rtcpFeedback: feedback,
        }),
      ],
    },
    headerExtensions: { audio: [...extensions(), useAudioLevelIndication()], video: extensions() },
  });
}

/** What a connection has negotiated for its received track; 0 means nothing. */
export interface Negotiated {
  rtxPayloadType: number;
  transportCcId: number;
}

export function negotiatedBy(pc: RTCPeerConnection): Negotiated {
  const [transceiver] = pc.getTransceivers();
  const uri = useTransportWideCC().uri;
  return {
    rtxPayloadType: transceiver?.codecs.find(({ name }) => name.toLowerCase() === 'rtx')?.payloadType ?? 0,
    transportCcId: transceiver?.headerExtensions.find((extension) => extension.uri === uri)?.id ?? 0,
  };
}

/** Sends one RTCP compound, encrypted by werift's session. */
export function sendRtcp(pc: RTCPeerConnection, compound: Buffer): void {
  const [transport] = pc.dtlsTransports;
  void transport?.sendRtcp([{ serialize: () => compound } as unknown as RtcpPacket]);
}

export function connected(pc: RTCPeerConnection, what: string): Promise<void> {
  return new Promise((done, failed) => {
    const timer = setTimeout(() => failed(new Error(`${what}: no connection within 20 s (${stateOf(pc)})`)), 20_000);
    const look = () => {
      if (pc.connectionState === 'connected') {
        clearTimeout(timer);
        done();
      } else if (pc.connectionState === 'failed') {
        clearTimeout(timer);
        failed(new Error(`${what}: the connection failed`));
      }
    };
    pc.connectionStateChange.subscribe(look);
    look();
  });
}

/** Describes a connection's progress: its candidate pairs and DTLS flight. */
function stateOf(pc: RTCPeerConnection): string {
  const [ice, dtls] = [pc.iceTransports[0], pc.dtlsTransports[0]];
  const { checkList = [] } = (ice?.connection ?? {}) as { checkList?: { state?: unknown; remoteAddr?: unknown }[] };
  const { flight } = ((dtls as unknown as { dtls?: { dtls?: { flight?: number } } }).dtls?.dtls ?? {}) as {
    flight?: number;
  };
  const pairs = checkList.map(({ state, remoteAddr }) => `${String(state)} to ${String(remoteAddr)}`);
  return `${pc.connectionState}; ICE ${ice?.state}, pairs [${pairs.join(', ')}]; DTLS ${dtls?.state}, flight ${flight}`;
}

interface Transport {
  socket: Socket;
  onData: (data: Buffer, from: [string, number]) => void;
}

/** Returns the socket of the nominated pair, which werift keeps several layers down. */
export function transportOf(pc: RTCPeerConnection): Transport {
  const ice = pc.iceTransports[0]?.connection as unknown as {
    nominated?: { protocol: { transport: Transport }; remoteAddr: [string, number] };
  };
  const transport = ice?.nominated?.protocol.transport;
  if (!transport) throw new Error('no nominated pair');
  return transport;
}

/** Returns the remote address for datagrams that bypass werift. */
export function remoteOf(pc: RTCPeerConnection): [string, number] {
  const ice = pc.iceTransports[0]?.connection as unknown as { nominated: { remoteAddr: [string, number] } };
  return ice.nominated.remoteAddr;
}

/** Returns the plaintext of one SRTP datagram, decrypted by werift's session, which proves that it is valid. */
export function decrypt(pc: RTCPeerConnection, datagram: Buffer): RtpPacket {
  const { srtp } = pc.dtlsTransports[0] as unknown as { srtp: { decrypt(data: Buffer): Buffer } };
  return RtpPacket.deSerialize(srtp.decrypt(datagram));
}

function nowMicros(): number {
  return (performance.timeOrigin + performance.now()) * 1000;
}

const stampBytes = 8;
/** Returns the timestamp that the publisher wrote at the end of the payload, in microseconds since 1970. */
export function stampOf(payload: Buffer): number {
  return payload.readDoubleLE(payload.length - stampBytes);
}

/** Voice at -30 dBov (RFC 6464 section 3), under the id in a publisher's own offer: werift counts from 1. */
const AUDIO_LEVEL = { id: 4, payload: Buffer.of(0x80 | 30) };

/** Sends a steady stream, packet by packet on a 1 ms tick. */
export class Publisher {
  readonly track: MediaStreamTrack;
  sent = 0;
  #sequence = 1;
  #pictureId = 1;
  #inFrame = 0;
  #frames = 0;
  #timer: NodeJS.Timeout | undefined;
  #startedAt = 0;
  #rate = 0;
  #owed = 0;

  constructor(
    readonly kind: Kind,
    /** Size of the datagram in bytes, without header extensions and SRTP tag. */
    readonly bytes: number,
  ) {
    this.track = new MediaStreamTrack({ kind });
  }

  start(packetsPerSecond: number): void {
    this.stop();
    this.#rate = packetsPerSecond;
    this.#startedAt = performance.now();
    this.#owed = 0;
    this.#timer = setInterval(() => {
      const due = ((performance.now() - this.#startedAt) * this.#rate) / 1000;
      // After this process has stalled, catch up by at most 20 ms at once.
      if (due - this.#owed > this.#rate / 50) this.#owed = due - this.#rate / 50;
      while (this.#owed < due) {
        this.#owed += 1;
        this.#send();
      }
    }, 1);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #send(): void {
    const video = this.kind === 'video';
    // A picture takes 33 ms at any rate.
    const perFrame = video ? Math.max(1, Math.round(this.#rate / 30)) : 1;
    const first = this.#inFrame === 0;
    const last = this.#inFrame === perFrame - 1;
    const payload = Buffer.alloc(this.bytes - 12);
    if (video) {
      // VP8 descriptor with a 15-bit picture id (RFC 7741 section 4.2). Every 30th frame is a key frame.
      payload[0] = first ? 0x90 : 0x80;
      payload[1] = 0x80;
      payload.writeUInt16BE(0x8000 | (this.#pictureId & 0x7fff), 2);
      payload[4] = this.#frames % 30 === 0 ? 0x10 : 0x11;
    }
    payload.writeDoubleLE(nowMicros(), payload.length - stampBytes);
    this.track.writeRtp(
      new RtpPacket(
        new RtpHeader({
          version: 2,
          payloadType: video ? 96 : 111,
          sequenceNumber: this.#sequence & 0xffff,
          timestamp: ((video ? 3000 : 960) * this.#frames) >>> 0,
          ssrc: 1,
          marker: video ? last : false,
          extension: !video,
          extensions: video ? [] : [AUDIO_LEVEL],
        }),
        payload,
      ),
    );
    this.sent += 1;
    this.#sequence += 1;
    this.#inFrame += 1;
    if (this.#inFrame >= perFrame) {
      this.#inFrame = 0;
      this.#frames += 1;
      this.#pictureId += 1;
    }
  }
}
