import type { Randomness } from '../randomness.js';
import { type CodecName, codecs, G711_FRAME_SAMPLES, opusTicks, silenceOf, ticksPerFrame } from './codecs.js';
import { JitterBuffer, type JitterStats } from './jitter-buffer.js';
import type { NegotiatedAudio } from './negotiation.js';
import { digitOf, parseRtp, writeRtp } from './rtp.js';
import { isPrivate, plainAddress } from './rtp-source.js';

export interface RtpAddress {
  address: string;
  port: number;
}

export interface RtpSessionOptions {
  randomness: Randomness;
  /** A key was pressed at the other end. */
  onDigit: (digit: string) => void;
}

export interface RtpStats extends Readonly<JitterStats> {
  received: number;
  /** From elsewhere, of an unknown payload type, or no RTP. */
  refused: number;
  sent: number;
}

/** Another source is accepted after this long a silence of the one before. */
const RELATCH_MS = 2000;
/** No frame of ours is longer; the biggest of Opus is 1275 bytes. */
const MAX_PAYLOAD = 1500;

/**
 * One RTP stream each way, without sockets and clocks: packets in, one frame per 20 ms out, and the other way round.
 * Symmetric (RFC 4961): audio is sent to the port that it comes from, on the host that the description names; a router between
 * may have changed the port. Only a description with a private address leaves the host open, to one public address.
 */
export class RtpSession {
  readonly #options: RtpSessionOptions;
  readonly #buffer = new JitterBuffer<Buffer>();
  #agreed: NegotiatedAudio | undefined;
  #latched: RtpAddress | undefined;
  /** Public address of a host whose description has a private one. */
  #publicHost: string | undefined;
  #heardAt: number | undefined;
  #remoteSsrc: number | undefined;
  /** Codec of what comes, once it is another than that of what we send. */
  #heardCodec: CodecName | undefined;
  /** Bytes of G.711 that are no whole frame yet: not everybody sends 20 ms packets. */
  #rest: Buffer = Buffer.alloc(0);
  /** Ticks of Opus that were handed out beyond the present 20 ms: nor is every packet of it that long. */
  #ahead = 0;
  #lastEvent: number | undefined;
  #ssrc: number;
  #sequence: number;
  #timestamp: number;
  #marker = true;
  #received = 0;
  #refused = 0;
  #sent = 0;

  constructor(options: RtpSessionOptions) {
    this.#options = options;
    this.#ssrc = options.randomness.below(2 ** 32);
    this.#sequence = options.randomness.below(2 ** 16);
    this.#timestamp = options.randomness.below(2 ** 32);
  }

  get agreed(): NegotiatedAudio | undefined {
    return this.#agreed;
  }

  /** Codec of what `play` gives: the other side may use any that was agreed to, and change it as it likes. */
  get heardCodec(): CodecName | undefined {
    return this.#heardCodec ?? this.#agreed?.codec.name;
  }

  /** When the last good packet came, in the clock of `receive`. */
  get heardAt(): number | undefined {
    return this.#heardAt;
  }

  /** Where our packets go. */
  get destination(): RtpAddress | undefined {
    return this.#latched ?? this.#agreed?.remote;
  }

  stats(): RtpStats {
    return { ...this.#buffer.stats, received: this.#received, refused: this.#refused, sent: this.#sent };
  }

  /** Takes what both sides agreed upon, at the beginning and after each re-INVITE. */
  configure(agreed: NegotiatedAudio): void {
    const before = this.#agreed;
    this.#agreed = agreed;
    if (agreed.remote?.address !== before?.remote?.address || agreed.remote?.port !== before?.remote?.port)
      this.#forgetSource();
    if (before && before.codec.name !== agreed.codec.name) {
      this.#hear(undefined);
      // Another clock needs another stream (RFC 3550 section 5.2).
      if (before.codec.clockRate !== agreed.codec.clockRate) this.#ssrc = this.#options.randomness.below(2 ** 32);
    }
  }

  /** Takes a datagram; `now` in milliseconds. */
  receive(data: Buffer, source: RtpAddress, now: number): void {
    const agreed = this.#agreed;
    const packet = parseRtp(data);
    const isEvent = agreed?.eventTypes.receive.has(packet?.payloadType as number) === true;
    const codec = packet && agreed?.receiveTypes.get(packet.payloadType);
    if (!agreed || !packet || packet.payload.length > MAX_PAYLOAD || (!isEvent && codec === undefined)) {
      this.#refused += 1;
      return;
    }
    if (!this.#latch(source, now)) {
      this.#refused += 1;
      return;
    }
    this.#heardAt = now;
    this.#received += 1;
    if (packet.ssrc !== this.#remoteSsrc) {
      if (this.#remoteSsrc !== undefined) this.#buffer.reset();
      this.#remoteSsrc = packet.ssrc;
    }
    if (isEvent) {
      // Several packets tell of one key press; all have its timestamp.
      const digit = digitOf(packet.payload);
      if (digit !== undefined && packet.timestamp !== this.#lastEvent) this.#options.onDigit(digit);
      this.#lastEvent = packet.timestamp;
      this.#buffer.push(packet.sequence, Buffer.alloc(0));
      return;
    }
    if (codec !== this.heardCodec) this.#hear(codec);
    this.#buffer.push(packet.sequence, packet.payload);
  }

  /** What waits is of another codec, and nothing any more. */
  #hear(codec: CodecName | undefined): void {
    this.#heardCodec = codec;
    this.#buffer.reset();
    this.#rest = Buffer.alloc(0);
    this.#ahead = 0;
  }

  /**
   * To be called every 20 ms: what is to be heard now. Undefined stands for 20 ms of which nothing came. G.711 is one frame of
   * 20 ms; of Opus it is whole packets, none while the one before still sounds.
   */
  play(): (Buffer | undefined)[] {
    const agreed = this.#agreed;
    if (!agreed || agreed.direction === 'sendonly' || agreed.direction === 'inactive') return [];
    return this.heardCodec === 'opus' ? this.#playOpus(ticksPerFrame(codecs.opus)) : [this.#playG711()];
  }

  #playOpus(ticks: number): (Buffer | undefined)[] {
    const packets: (Buffer | undefined)[] = [];
    while (this.#ahead < ticks) {
      const packet = this.#buffer.pop();
      const length = packet && opusTicks(packet);
      packets.push(length === undefined ? undefined : packet);
      this.#ahead += length ?? ticks;
    }
    this.#ahead -= ticks;
    return packets;
  }

  #playG711(): Buffer | undefined {
    while (this.#rest.length < G711_FRAME_SAMPLES) {
      const payload = this.#buffer.pop();
      if (payload === undefined || payload.length === 0) return undefined;
      this.#rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, payload]) : payload;
    }
    const frame = this.#rest.subarray(0, G711_FRAME_SAMPLES);
    this.#rest = this.#rest.subarray(G711_FRAME_SAMPLES);
    return frame;
  }

  /** To be called every 20 ms: the packet to send now; without a frame it is silence, so that the way stays open. */
  pack(frame: Buffer | undefined): { packet: Buffer; to: RtpAddress } | undefined {
    const agreed = this.#agreed;
    if (!agreed) return undefined;
    this.#timestamp = (this.#timestamp + ticksPerFrame(agreed.codec)) >>> 0;
    const to = this.destination;
    if (!to || to.port === 0 || agreed.direction === 'recvonly' || agreed.direction === 'inactive') {
      this.#marker = true;
      return undefined;
    }
    const packet = writeRtp({
      payloadType: agreed.sendType,
      marker: this.#marker,
      sequence: this.#sequence,
      timestamp: this.#timestamp,
      ssrc: this.#ssrc,
      payload: frame ?? silenceOf(agreed.codec.name),
    });
    this.#marker = false;
    this.#sequence = (this.#sequence + 1) & 0xffff;
    this.#sent += 1;
    return { packet, to };
  }

  #latch(source: RtpAddress, now: number): boolean {
    const latched = this.#latched;
    if (latched && latched.address === source.address && latched.port === source.port) return true;
    const { remote } = this.#agreed as NegotiatedAudio;
    if (remote === undefined) return false;
    const host = plainAddress(source.address);
    const named = plainAddress(remote.address);
    if (host !== named && !this.#mayBePublicHost(host, named)) return false;
    // The described port may speak at once: after a transfer the last packets of the old place still come.
    const announced = host === named && remote.port === source.port;
    if (latched && !announced && this.#heardAt !== undefined && now - this.#heardAt < RELATCH_MS) return false;
    this.#latched = { ...source };
    if (host !== named) this.#publicHost = host;
    return true;
  }

  #mayBePublicHost(host: string, named: string): boolean {
    if (this.#publicHost !== undefined) return host === this.#publicHost;
    return isPrivate(named) && !isPrivate(host);
  }

  #forgetSource(): void {
    this.#latched = undefined;
    this.#publicHost = undefined;
  }
}
