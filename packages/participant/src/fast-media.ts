import type { Socket } from 'node:dgram';
import { RtcpWriter, RtpView, TransportCcRecorder } from '@bloom/rtp';
import { SrtpReceiveSession, SrtpSendSession } from '@bloom/webrtc';
import type { RTCPeerConnection } from 'werift';
import { negotiatedBy, remoteOf, transportOf } from './connection.js';
import type { RtpOutlet } from './fast-source.js';
import { stampOf } from './publisher.js';

/**
 * Sender SSRC of our feedback. Every session counts its SSRCs' RTCP packets separately, and werift has its own SSRCs.
 */
const FEEDBACK_SSRC = 0x6c6f6164;
/** Bytes of the key and the salt, and of the tag. */
const KEY_BYTES = 16;
const SALT_BYTES = 14;
const TAG_BYTES = 10;
/** Bytes after a compound for SRTCP's index and tag. */
const SRTCP_BYTES = 14;
const MAX_DATAGRAM = 2_048;
const PADDING_BIT = 0x20;

/** Profile of every Bloom server (RFC 5764 section 4.1.2). */
const AES_CM_SHA1_80 = 1;

/** werift's DTLS, which it keeps to itself. */
interface DtlsSession {
  readonly srtp: { readonly srtpProfile?: number };
  extractSessionKeys(
    keyBytes: number,
    saltBytes: number,
  ): Record<'localKey' | 'localSalt' | 'remoteKey' | 'remoteSalt', Buffer>;
}

/** What arrived since the last reading. */
export interface Arrivals {
  /** Media packets, without retransmissions and padding. */
  packets: number;
  bytes: number;
  /** Sampled packets that were not valid SRTP. */
  invalid: number;
  /** Times from the publisher to here of the sampled packets, ms; their publishers run on this machine's clock. */
  delaysMs: number[];
}

export interface FastMediaOptions {
  /** Payload type of the media; all others are repairs. */
  readonly payloadType: number;
  /** Opens one of this many packets, which proves that all are valid. */
  readonly sampleEvery: number;
}

/**
 * Handles the media of a connected peer connection without werift, which spends ten times what the server does on a
 * packet. werift keeps ICE, DTLS and the reports.
 */
export class FastMedia implements RtpOutlet {
  readonly ssrc: number;
  readonly transportCcId: number;
  #arrivals: Arrivals = { packets: 0, bytes: 0, invalid: 0, delaysMs: [] };
  readonly #socket: Socket;
  readonly #remote: readonly [address: string, port: number];
  readonly #options: FastMediaOptions;
  readonly #receive: SrtpReceiveSession;
  readonly #send: SrtpSendSession;
  readonly #recorder = new TransportCcRecorder({ senderSsrc: FEEDBACK_SSRC });
  readonly #writer = new RtcpWriter();
  readonly #view = new RtpView();
  #untilSample = 0;
  #mediaSsrc = 0;

  constructor(pc: RTCPeerConnection, options: FastMediaOptions) {
    this.#options = options;
    this.#remote = remoteOf(pc);
    this.ssrc = pc.getTransceivers().find(({ sender }) => sender.track)?.sender.ssrc ?? 0;
    this.transportCcId = negotiatedBy(pc).transportCcId;
    const { dtls } = pc.dtlsTransports[0] as unknown as { dtls: DtlsSession };
    const { srtpProfile } = dtls.srtp;
    if (srtpProfile !== AES_CM_SHA1_80) throw new Error(`SRTP profile ${srtpProfile} is not AES_CM_128_HMAC_SHA1_80`);
    const keys = dtls.extractSessionKeys(KEY_BYTES, SALT_BYTES);
    this.#receive = new SrtpReceiveSession({ masterKey: keys.remoteKey, masterSalt: keys.remoteSalt });
    this.#send = new SrtpSendSession({ masterKey: keys.localKey, masterSalt: keys.localSalt });
    const transport = transportOf(pc);
    this.#socket = transport.socket;
    this.#socket.removeAllListeners('message');
    this.#socket.on('message', (datagram, { address, port }) => {
      const [first = 0, second = 0] = datagram;
      const isRtp = first >= 128 && first <= 191 && !(second >= 192 && second <= 223);
      if (isRtp) this.#arrived(datagram);
      else transport.onData(datagram, [address, port]);
    });
  }

  /** Returns what arrived since the last call. */
  takeArrivals(): Arrivals {
    const arrivals = this.#arrivals;
    this.#arrivals = { packets: 0, bytes: 0, invalid: 0, delaysMs: [] };
    return arrivals;
  }

  /** Seals and sends the RTP packet `buffer[0, length)`. Needs 10 bytes of space after it. */
  sendRtp(buffer: Buffer, length: number): void {
    const end = this.#send.sealRtp(buffer, 0, length);
    this.#socket.send(buffer.subarray(0, end), this.#remote[1], this.#remote[0]);
  }

  /** Reports the arrivals to the server, which estimates the bandwidth from them. Must be called about every 100 ms. */
  sendFeedback(nowMs: number): void {
    if (!this.#recorder.isDue(nowMs)) return;
    while (this.#recorder.write(this.#writer.reset(), this.#mediaSsrc, nowMs)) {
      const compound = this.#writer.bytes();
      const datagram = Buffer.alloc(compound.length + SRTCP_BYTES);
      compound.copy(datagram);
      const end = this.#send.sealRtcp(datagram, 0, compound.length);
      this.#socket.send(datagram.subarray(0, end), this.#remote[1], this.#remote[0]);
    }
  }

  #arrived(datagram: Buffer): void {
    const view = this.#view;
    const isMedia = ((datagram[1] ?? 0) & 0x7f) === this.#options.payloadType;
    // Repairs and probes are never opened, and the length of their padding is encrypted.
    if (!isMedia) datagram[0] = (datagram[0] ?? 0) & ~PADDING_BIT;
    if (datagram.length > MAX_DATAGRAM || !view.parse(datagram, 0, datagram.length - TAG_BYTES)) return;
    const nowMs = performance.now();
    if (this.transportCcId > 0 && view.findExtension(this.transportCcId) && view.foundLength === 2) {
      this.#recorder.record(datagram.readUInt16BE(view.foundStart), nowMs);
    }
    if (!isMedia) return;
    this.#mediaSsrc = view.ssrc;
    this.#arrivals.packets += 1;
    this.#arrivals.bytes += datagram.length;
    this.#untilSample -= 1;
    if (this.#untilSample >= 0) return;
    this.#untilSample = this.#options.sampleEvery - 1;
    const end = this.#receive.open(datagram);
    if (end < 0) this.#arrivals.invalid += 1;
    else this.#arrivals.delaysMs.push(performance.timeOrigin + nowMs - stampOf(datagram.subarray(0, end)) / 1_000);
  }
}
