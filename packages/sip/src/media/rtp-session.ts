import type { Randomness } from '../randomness.js';
import { type CodecName, codecs, G711_FRAME_SAMPLES, opusTicks, silenceOf, ticksPerFrame } from './codecs.js';
import { JitterBuffer, type JitterStats } from './jitter-buffer.js';
import type { NegotiatedAudio } from './negotiation.js';
import { digitOf, isRtcp, parseRtp, writeRtp } from './rtp.js';
import { isPrivate, plainAddress } from './rtp-source.js';

export interface RtpAddress {
  address: string;
  port: number;
}

export interface RtpSessionOptions {
  randomness: Randomness;
  /** Called when a key is pressed on the other side. */
  onDigit: (digit: string) => void;
}

export interface RtpStats extends Readonly<JitterStats> {
  received: number;
  /** Packets that come from elsewhere, have an unknown payload type, or are not RTP. */
  refused: number;
  sent: number;
}

/** Another source is accepted after the previous one has been silent for this long. */
const RELATCH_MS = 2000;
/** Key presses last longer than this, and each press becomes a message to the server. */
const MIN_KEY_MS = 40;
/** Maximum payload; the largest Opus frame has 1275 bytes. */
const MAX_PAYLOAD = 1500;

/**
 * One RTP stream in each direction, without sockets or clocks: packets in, one frame per 20 ms out, and vice versa.
 * Symmetric (RFC 4961): audio is sent to the port it comes from, on the host named by the description, because a router
 * in between may have changed the port. A private address says nothing about where packets come from, so beside it
 * the hosts of the signalling count: anybody else could be the first to send.
 */
export class RtpSession {
  readonly #options: RtpSessionOptions;
  readonly #buffer = new JitterBuffer<Buffer>();
  #agreed: NegotiatedAudio | undefined;
  #latched: RtpAddress | undefined;
  /** The host that audio comes from, if the description names another, private one. */
  #publicHost: string | undefined;
  #heardAt: number | undefined;
  #aliveAt: number | undefined;
  #remoteSsrc: number | undefined;
  /** Codec being received, if it differs from the one being sent. */
  #heardCodec: CodecName | undefined;
  /** G.711 bytes short of a whole frame: not every phone sends 20 ms packets. */
  #rest: Buffer = Buffer.alloc(0);
  /** Opus ticks played beyond the current 20 ms, since packets can be longer. */
  #ahead = 0;
  #lastEvent: number | undefined;
  #keyAt = Number.NEGATIVE_INFINITY;
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

  /** Codec of the result of `play`: the other side may switch between the negotiated codecs at any time. */
  get heardCodec(): CodecName | undefined {
    return this.#heardCodec ?? this.#agreed?.codec.name;
  }

  /** Time of the last accepted packet, on the clock of `receive`. */
  get heardAt(): number | undefined {
    return this.#heardAt;
  }

  /** Time of the phone's last packet, including RTCP and comfort noise. */
  get aliveAt(): number | undefined {
    return this.#aliveAt;
  }

  /** Address that packets are sent to. */
  get destination(): RtpAddress | undefined {
    return this.#latched ?? this.#agreed?.remote;
  }

  stats(): RtpStats {
    return { ...this.#buffer.stats, received: this.#received, refused: this.#refused, sent: this.#sent };
  }

  /** Takes the negotiated audio, initially and after each re-INVITE. */
  configure(agreed: NegotiatedAudio): void {
    const before = this.#agreed;
    this.#agreed = agreed;
    if (agreed.remote?.address !== before?.remote?.address || agreed.remote?.port !== before?.remote?.port)
      this.#forgetSource();
    if (before !== undefined && before.codec.name !== agreed.codec.name) {
      this.#hear(undefined);
      // Another clock rate needs another SSRC (RFC 3550 section 5.2).
      if (before.codec.clockRate !== agreed.codec.clockRate) this.#ssrc = this.#options.randomness.below(2 ** 32);
    }
  }

  /** Takes a datagram from the RTP port or the RTCP port beside it; `now` is in milliseconds. */
  receive(data: Buffer, source: RtpAddress, now: number): void {
    // Anything that looks like RTP or RTCP shows that the phone is alive, whatever its payload type.
    if (data.length >= 8 && (data[0] as number) >> 6 === 2 && this.#isOfPhone(source)) this.#aliveAt = now;
    if (isRtcp(data)) return;
    const agreed = this.#agreed;
    const packet = parseRtp(data);
    const isEvent = agreed?.eventTypes.receive.has(packet?.payloadType as number) === true;
    const codec = packet && agreed?.receiveTypes.get(packet.payloadType);
    if (
      agreed === undefined ||
      packet === undefined ||
      packet.payload.length > MAX_PAYLOAD ||
      (!isEvent && codec === undefined)
    ) {
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
      // Several packets report one key press; all carry the same timestamp.
      const digit = digitOf(packet.payload);
      if (digit !== undefined && packet.timestamp !== this.#lastEvent && now - this.#keyAt >= MIN_KEY_MS) {
        this.#keyAt = now;
        this.#options.onDigit(digit);
      }
      this.#lastEvent = packet.timestamp;
      this.#buffer.push(packet.sequence, Buffer.alloc(0));
      return;
    }
    if (codec !== this.heardCodec) this.#hear(codec);
    this.#buffer.push(packet.sequence, packet.payload);
  }

  /** Switches the received codec and drops the frames buffered in the old one. */
  #hear(codec: CodecName | undefined): void {
    this.#heardCodec = codec;
    this.#buffer.reset();
    this.#rest = Buffer.alloc(0);
    this.#ahead = 0;
  }

  /**
   * Returns what to play now; call it every 20 ms. Undefined stands for a missing frame. G.711 yields one 20 ms frame;
   * Opus yields whole packets, and none while the previous one is still playing.
   */
  play(): (Buffer | undefined)[] {
    const agreed = this.#agreed;
    if (agreed === undefined || agreed.direction === 'sendonly' || agreed.direction === 'inactive') return [];
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

  /**
   * Returns the packet to send now; call it every 20 ms. Without a frame it contains silence, which keeps NAT bindings
   * open.
   */
  pack(frame: Buffer | undefined): { packet: Buffer; to: RtpAddress } | undefined {
    const agreed = this.#agreed;
    if (agreed === undefined) return undefined;
    this.#timestamp = (this.#timestamp + ticksPerFrame(agreed.codec)) >>> 0;
    const to = this.destination;
    if (to === undefined || to.port === 0 || agreed.direction === 'recvonly' || agreed.direction === 'inactive') {
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

  #isOfPhone({ address }: RtpAddress): boolean {
    const remote = this.#agreed?.remote;
    if (remote === undefined) return false;
    const host = plainAddress(address);

    return host === plainAddress(remote.address) || host === this.#publicHost;
  }

  #latch(source: RtpAddress, now: number): boolean {
    const latched = this.#latched;
    if (latched !== undefined && latched.address === source.address && latched.port === source.port) return true;
    const { remote } = this.#agreed as NegotiatedAudio;
    if (remote === undefined) return false;
    const host = plainAddress(source.address);
    const named = plainAddress(remote.address);
    if (host !== named && !this.#mayBePublicHost(host, named)) return false;
    // The described port is accepted immediately: after a transfer, packets from the old place may still arrive.
    const announced = host === named && remote.port === source.port;
    if (latched !== undefined && !announced && this.#heardAt !== undefined && now - this.#heardAt < RELATCH_MS)
      return false;
    this.#latched = { ...source };
    if (host !== named) this.#publicHost = host;
    return true;
  }

  #mayBePublicHost(host: string, named: string): boolean {
    if (this.#publicHost !== undefined) return host === this.#publicHost;
    const { signallingHosts = [] } = this.#agreed as NegotiatedAudio;

    return isPrivate(named) && signallingHosts.some((each) => plainAddress(each) === host);
  }

  #forgetSource(): void {
    this.#latched = undefined;
    this.#publicHost = undefined;
  }
}
