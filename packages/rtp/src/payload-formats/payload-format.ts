import type { OrderedPacket } from '../reorder-buffer.js';
import type { RtpView } from '../rtp-view.js';
import type { DependencyDescriptors } from './dependency-descriptor.js';

/** Whether a receiver that has no picture yet can start with a packet. */
export const EntryPoint = {
  no: 0,
  /** Only if the packet is the first of its picture, which its payload does not tell. */
  ifFirst: 1,
  yes: 2,
} as const;
export type EntryPoint = (typeof EntryPoint)[keyof typeof EntryPoint];

/**
 * The payload of the packet read last. There is one reader per stream, so that nothing is allocated per packet; its
 * fields are valid until the next `read`.
 */
export interface PayloadReader {
  readonly entryPoint: EntryPoint;
  /**
   * Layer of a scalable stream: a receiver of one layer needs all below it. 0 is the base, and a stream without layers.
   */
  readonly temporalLayer: number;
  readonly spatialLayer: number;
  /** False if the packet has no part of a picture, so that it does not show which layers there are. */
  readonly hasPicture?: boolean;
  /** True for the last packet of a picture's spatial layer. */
  readonly endsLayer: boolean;
  /**
   * Highest temporal layer that a receiver without it may begin to get with this packet, if it can decode the packet;
   * -1 if none.
   */
  readonly switchesTo: number;
  /** Bytes at the start of the payload that `write` replaces. */
  readonly headerLength: number;
  /**
   * Reads the packet: its payload, or one of its header extensions. May shorten the payload, in place, by what no
   * receiver needs. Returns false if it is malformed. Never throws.
   */
  read(view: RtpView): boolean;
  /**
   * Writes the payload header with the numbers from a `PayloadNumbering`. Returns its length, at most two bytes more
   * than the source's.
   */
  write(target: Buffer, at: number, numbers: number): number;
}

/** Keeps the numbers in one outbound stream's payloads continuous when its source switches. */
export interface PayloadNumbering {
  /** Starts a new source with the packet in `reader`, which must have the same format: pass it to `map` next. */
  switchTo(reader: PayloadReader): void;
  /** Returns the packet's numbers for this receiver: the low 31 bits, which only the format understands. */
  map(reader: PayloadReader): number;
  /** Leaves out a packet, with all others of its picture. */
  drop(reader: PayloadReader): void;
}

/** One frame as its encoder produced it: an Opus packet, a picture, a key picture with its parameter sets. */
export interface AssembledFrame {
  /** Unwrapped RTP timestamp. */
  timestamp: number;
  key: boolean;
  data: Buffer;
}

/** Reassembles the frames of one stream. After a loss it returns nothing until the next key frame. */
export interface FrameAssembler {
  /** True while frames are dropped until the next key frame: ask the sender for one. */
  readonly needsKeyframe: boolean;
  /** Bytes of the incomplete frame, including `PART_BYTES` for each of its parts. */
  readonly heldBytes: number;
  /** Returns the frames that this packet completes, at most two. A malformed payload breaks only its own frame. */
  push(packet: OrderedPacket): readonly AssembledFrame[];
  /** Reports that packets are missing before the next one. */
  gap(): void;
}

/** One frame split into the payloads of its packets, in order. */
export interface PacketisedFrame {
  key: boolean;
  payloads: readonly Buffer[];
}

/** Parts of key frames that a sender announces in its SDP and leaves out of its packets, such as parameter sets. */
export interface AnnouncedParts {
  /** False once the sender's packets contradict the announcement. */
  readonly isValid: boolean;
  /** Returns the payload of a packet to insert before this one, which starts a key frame without its parts. */
  missingBefore(view: RtpView): Buffer | undefined;
}

/** How an offer of the server describes a codec. The payload types are ours to choose. */
export interface OfferedFormat {
  readonly payloadType: number;
  /** Payload type of retransmissions (RFC 4588), for formats that use them. */
  readonly rtxPayloadType?: number;
  /** Audio only. */
  readonly channels?: number;
  /** Value of `a=fmtp`; empty without one. */
  readonly parameters: string;
}

/** Everything that Bloom knows about a codec. */
export interface PayloadFormat {
  readonly kind: 'audio' | 'video';
  /** Media type as registered, such as `video/VP8`. */
  readonly mimeType: string;
  /** Name in messages, with the profile that publishers must use. */
  readonly label: string;
  readonly clockRate: number;
  /**
   * True if a publisher's client gets this codec only when it offers no other one that the room accepts. Browsers list
   * every codec that they have, and viewers may lack this one.
   */
  readonly onRequest: boolean;
  readonly offered: OfferedFormat;
  /** True if pictures may be sent in a different order than they are shown (B-frames). */
  readonly reordersPictures: boolean;
  /** True if a receiver can decode a stream without the packets of its upper layers. */
  readonly hasLayers: boolean;
  /** True if packets have a dependency descriptor where the header extension is agreed. */
  readonly hasDescriptors: boolean;
  /**
   * Returns the reason why some receivers of this codec could not decode a publisher with these parameters of `a=fmtp`;
   * undefined if all can.
   */
  obstacle(parameters: string): string | undefined;
  /** Ranks the payload types that a receiver offers for this codec: the highest is answered, the first among equals. */
  rank(parameters: string): number;
  /** `descriptors`: of the stream, for formats whose layers a header extension tells. */
  createReader(descriptors?: DependencyDescriptors): PayloadReader;
  /** Returns undefined if all receivers get the payload unchanged. */
  createNumbering(): PayloadNumbering | undefined;
  createAssembler(): FrameAssembler;
  /** Reads the sender's `a=fmtp`. Returns undefined if it announces nothing, or more than `MAX_ANNOUNCED_BYTES`. */
  createAnnouncedParts(parameters: string): AnnouncedParts | undefined;
  packetise(frame: Buffer): PacketisedFrame;
}

/** Maximum payload of a packet that we create, bytes. */
export const MAX_PAYLOAD = 1180;

/** Maximum size of announced parts, bytes: all viewers get them again and again. */
export const MAX_ANNOUNCED_BYTES = 512;

/** The result for most packets, which complete nothing. */
const NOTHING: readonly never[] = [];

/** Returns the frames that one packet completes; allocates nothing if there are none. */
export function completed<T>(first: T | undefined, second: T | undefined): readonly T[] {
  if (first === undefined) return second === undefined ? NOTHING : [second];
  return second === undefined ? [first] : [first, second];
}

/** Parses the value of an `a=fmtp`, `a=1;b=2`, with lower-case keys; the first value of a repeated key wins. */
export function formatParameters(text: string): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const part of text.split(';')) {
    const equals = part.indexOf('=');
    const key = (equals < 0 ? part : part.slice(0, equals)).trim().toLowerCase();
    if (key !== '' && !parameters.has(key)) parameters.set(key, equals < 0 ? '' : part.slice(equals + 1).trim());
  }

  return parameters;
}
