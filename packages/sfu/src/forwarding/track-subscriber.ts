import type { RtpView, Vp8Descriptor } from '@bloom/rtp';
import type { VariantSelection } from '../variant-selection.js';
import type { InboundStream } from './inbound-stream.js';

/** Whoever gets the packets of a published track: a slot of a client, or the tap of a component. */
export interface TrackSubscriber {
  readonly selection: VariantSelection;
  /** The client behind it, to be told of voice activity; none for a tap. */
  readonly receiver?: { readonly peerId: string };
  /** To be called after whatever may have changed the selection. */
  selectionChanged(): void;
  /** Begins with this packet, the first of a keyframe; the caller forwards it next. */
  switchTo(stream: InboundStream, view: RtpView, vp8: Vp8Descriptor, sequence: number, nowMs: number): void;
  /** One packet of the current source. `audioLevel` -1: none. */
  forward(view: RtpView, vp8: Vp8Descriptor, sequence: number, audioLevel: number, nowMs: number): void;
  /** The packet switched at came late: what overtook it is in the store. */
  catchUp(stream: InboundStream, first: number, nowMs: number): void;
  /** A packet of the current source that carries no media. */
  skip(sequence: number): void;
  sourceReplaced(old: InboundStream): void;
  trackGone(): void;
  fault(error: unknown): void;
}
