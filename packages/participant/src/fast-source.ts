import { MediaStreamTrack } from 'werift';

const FRAMES_PER_SECOND = 30;
/** A key picture every second: subscribers need not ask for any. */
const KEYFRAME_EVERY = 30;
const CLOCK_RATE = 90_000;
/** Largest payload: with headers and tag it fits every link. */
const MAX_PAYLOAD_BYTES = 1_100;
/** RTP header with one extension of two bytes. */
const HEADER_BYTES = 20;
/** Payload descriptor (RFC 7741 section 4.2), the first byte of the picture, and the time at the end. */
const MIN_PAYLOAD_BYTES = 13;
const TAG_BYTES = 10;
/** After a pause of this process longer than this, missed pictures are skipped, ms. */
const MAX_LATE_MS = 100;

export interface FastSourceOptions {
  readonly payloadType: number;
  readonly bitrateBps: number;
}

/** Destination of the packets, and the fields they must carry. */
export interface RtpOutlet {
  /** Announced in the offer. */
  readonly ssrc: number;
  /** Id of the extension with transport-wide numbers; 0 for none. */
  readonly transportCcId: number;
  /** Seals and sends the packet `buffer[0, length)`, which has space for the tag. */
  sendRtp(buffer: Buffer, length: number): void;
}

/** Sends a steady video of VP8 packets without pictures, each with the time of sending at its end. */
export class FastSource {
  /** Pass it to `signal`, which announces it. */
  readonly track = new MediaStreamTrack({ kind: 'video' });
  sent = 0;
  readonly #options: FastSourceOptions;
  readonly #packet: Buffer;
  readonly #payloadBytes: number;
  readonly #packetsPerFrame: number;
  #outlet: RtpOutlet | undefined;
  #sequence = 0;
  #frames = 0;
  #dueMs = 0;

  constructor(options: FastSourceOptions) {
    this.#options = options;
    const frameBytes = options.bitrateBps / 8 / FRAMES_PER_SECOND;
    this.#packetsPerFrame = Math.max(1, Math.ceil(frameBytes / MAX_PAYLOAD_BYTES));
    this.#payloadBytes = Math.max(MIN_PAYLOAD_BYTES, Math.round(frameBytes / this.#packetsPerFrame));
    this.#packet = Buffer.alloc(HEADER_BYTES + this.#payloadBytes + TAG_BYTES);
  }

  /** Packets per second. */
  get rate(): number {
    return this.#packetsPerFrame * FRAMES_PER_SECOND;
  }

  start(outlet: RtpOutlet, nowMs: number): void {
    this.#dueMs = nowMs;
    this.#outlet = outlet;
  }

  stop(): void {
    this.#outlet = undefined;
  }

  /** Sends the pictures that are due. Must be called more than 30 times a second. */
  tick(nowMs: number): void {
    const outlet = this.#outlet;
    if (outlet === undefined) return;
    if (nowMs - this.#dueMs > MAX_LATE_MS) this.#dueMs = nowMs;
    for (; this.#dueMs <= nowMs; this.#dueMs += 1_000 / FRAMES_PER_SECOND) this.#frame(outlet);
  }

  #frame(outlet: RtpOutlet): void {
    for (let i = 0; i < this.#packetsPerFrame; i += 1) {
      // The kernel copies a datagram only if it is sent at once, so each packet has its own memory.
      const packet = Buffer.from(this.#packet);
      this.#write(packet, i, outlet);
      outlet.sendRtp(packet, HEADER_BYTES + this.#payloadBytes);
      this.sent += 1;
      this.#sequence += 1;
    }
    this.#frames += 1;
  }

  /** Writes packet `i` of the picture. */
  #write(packet: Buffer, i: number, { ssrc, transportCcId }: RtpOutlet): void {
    const isLast = i === this.#packetsPerFrame - 1;
    packet[0] = 0x90;
    packet[1] = (isLast ? 0x80 : 0) | this.#options.payloadType;
    packet.writeUInt16BE(this.#sequence & 0xffff, 2);
    packet.writeUInt32BE(((this.#frames * CLOCK_RATE) / FRAMES_PER_SECOND) >>> 0, 4);
    packet.writeUInt32BE(ssrc, 8);
    packet.writeUInt32BE(0xbede_0001, 12);
    // Padding if there is no such extension.
    if (transportCcId > 0) {
      packet[16] = (transportCcId << 4) | 1;
      packet.writeUInt16BE(this.#sequence & 0xffff, 17);
    }
    packet[HEADER_BYTES] = i === 0 ? 0x90 : 0x80;
    packet[HEADER_BYTES + 1] = 0x80;
    packet.writeUInt16BE(0x8000 | (this.#frames & 0x7fff), HEADER_BYTES + 2);
    packet[HEADER_BYTES + 4] = this.#frames % KEYFRAME_EVERY === 0 ? 0x10 : 0x11;
    packet.writeDoubleLE((performance.timeOrigin + performance.now()) * 1_000, HEADER_BYTES + this.#payloadBytes - 8);
  }
}
