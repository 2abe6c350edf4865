import type { ChannelKind, ChannelName } from '@bloom/webrtc';
import type { InboundTrack, Variant } from '../media-engine.js';
import type { PerVariant } from '../variants/variants.js';
import type { PacketRoute } from './shared-ring.js';

/** What another worker must know about a published track to forward it; plain data. */
export interface TrackState {
  params: InboundTrack;
  muted: boolean;
  blocked: boolean;
  /** True once newcomers need not wait for their target variant. */
  settled: boolean;
  voice: 'speech' | 'silence' | undefined;
  /** Bits per second. */
  bitrates: PerVariant<number>;
  /** SSRC of each variant that can be received now. */
  available: Partial<PerVariant<number>>;
}

/** A message of a data channel on its way to the clients of another worker. */
export interface CrossingData {
  label: string;
  isText: boolean;
  kind: ChannelKind;
  /** With the header that names the sender. */
  frame: Uint8Array;
  /** Ids of the receivers; undefined means everybody. */
  receivers: readonly string[] | undefined;
}

/** Memory of a message on its way, apart from its contents; of each receiver's id, apart from its characters. */
const MESSAGE_BYTES = 512;
const ID_BYTES = 16;

/** Returns the memory that a message takes on its way, bytes. */
export function bytesOf({ label, frame, receivers = [] }: CrossingData): number {
  let bytes = MESSAGE_BYTES + label.length + frame.byteLength;
  for (const id of receivers) bytes += ID_BYTES + id.length;

  return bytes;
}

/**
 * Messages between the parts of one room on two workers. Tracks are identified by their number on the sender's worker.
 */
export type CrossingMessage = { room: number } /** This part is open; an `answer` needs none in return. */ & (
  | { type: 'hello'; isAnswer: boolean }
  | { type: 'track'; track: number; peerId: string; state: TrackState }
  | { type: 'state'; track: number; state: TrackState }
  | { type: 'gone'; track: number }
  /**
   * The receiver of the track needs these variants from now on, and no others. `highest`: index of the highest one that
   * it would take if the publisher sent it; -1 = none.
   */
  | { type: 'need'; track: number; variants: readonly Variant[]; highest: number }
  | { type: 'keyframe'; track: number; variant: Variant }
  /** The publisher's clock of one stream: an NTP time and the RTP timestamp at the same moment, now. */
  | { type: 'clock'; track: number; variant: Variant; ssrc: number; ntp: readonly [number, number]; rtp: number }
  | { type: 'channelOpened'; channel: ChannelName }
  | { type: 'channelClosed'; label: string }
  | { type: 'data'; data: CrossingData }
);

/** The link from one worker to another. */
export interface WorkerLink {
  /** Number of the other worker. */
  readonly worker: number;
  /** Sends an RTP packet under this sequence number. Returns false if the other worker is too far behind. */
  forward(route: PacketRoute, packet: Uint8Array, sequence: number): boolean;
  post(message: CrossingMessage): void;
  /** Returns true if the other worker can accept a message of this room. Call it before posting `data`. */
  fits(room: number, data: CrossingData): boolean;
}
