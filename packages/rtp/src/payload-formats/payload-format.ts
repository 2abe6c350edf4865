import type { OrderedPacket } from '../reorder-buffer.js';
import type { RtpView } from '../rtp-view.js';

/** Whether a receiver that has no picture yet can begin with a packet. */
export const EntryPoint = {
  no: 0,
  /** Only if the packet is the first of its picture, which its payload does not say. */
  ifFirst: 1,
  yes: 2,
} as const;
export type EntryPoint = (typeof EntryPoint)[keyof typeof EntryPoint];

/**
 * The payload of the packet read last. There is one reader per stream, so that nothing is allocated per packet; its fields are
 * valid until the next `read`.
 */
export interface PayloadReader {
  readonly entryPoint: EntryPoint;
  /** Layers of a scalable stream: a receiver of one needs all below it. 0 is the base, and what has no layers. */
  readonly temporalLayer: number;
  readonly spatialLayer: number;
  /** Bytes at the start of the payload that `write` replaces. */
  readonly headerLength: number;
  /** Reads the packet: its payload, or an extension of its header. Returns false when it is malformed. Never throws. */
  read(view: RtpView): boolean;
  /** Writes the payload header with the numbers that a `PayloadNumbering` gave. Returns its length: two bytes more at most. */
  write(target: Buffer, at: number, numbers: number): number;
}

/** Continues the numbers in the payloads of one outbound stream when its source switches. */
export interface PayloadNumbering {
  /** Starts a new source with the packet in `reader`: pass it to `map` next. `reader` is one of the same format. */
  switchTo(reader: PayloadReader): void;
  /** Returns the numbers of the packet for this receiver: 32 bits that only the format understands. */
  map(reader: PayloadReader): number;
}

/** One frame as its encoder made it: an Opus packet, a picture, a key picture with its parameter sets. */
export interface AssembledFrame {
  /** Unwrapped RTP timestamp. */
  timestamp: number;
  key: boolean;
  data: Buffer;
}

/** Puts the frames of one stream together. After a loss it returns nothing before the next key frame. */
export interface FrameAssembler {
  /** True while frames are dropped until the next key frame: ask the sender for one. */
  readonly needsKeyFrame: boolean;
  /** Bytes of the incomplete frame, `PART_BYTES` for each of its parts included. */
  readonly heldBytes: number;
  /** Returns the frames that this packet completes, two at most. Malformed payloads break their frame only. */
  push(packet: OrderedPacket): readonly AssembledFrame[];
  /** Reports that packets are missing before the next one. */
  gap(): void;
}

/** One frame taken apart: the payloads of its packets in order. */
export interface PacketisedFrame {
  key: boolean;
  payloads: readonly Buffer[];
}

/** All that the media plane knows of a codec. */
export interface PayloadFormat {
  readonly clockRate: number;
  /** True if pictures may be sent in another order than they are shown (B-frames). */
  readonly reordersPictures: boolean;
  createReader(): PayloadReader;
  /** Returns undefined when all receivers get the payload as it came. */
  createNumbering(): PayloadNumbering | undefined;
  createAssembler(): FrameAssembler;
  packetise(frame: Buffer): PacketisedFrame;
}

/** Bound on the payload of a packet that we make, bytes. */
export const MAX_PAYLOAD = 1180;
