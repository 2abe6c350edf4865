import type { PeerRequest, SessionInput } from '@bloom/rooms';
import type { InboundTrack, OutboundSlot, Variant } from '@bloom/sfu';
import type { AnswerMedia } from '@bloom/webrtc';

/** What a client sends and receives, as its role wants it now. */
export interface Negotiated {
  inbound: readonly InboundTrack[];
  outbound: readonly OutboundSlot[];
  /** To be carried out when the media plane knows it. */
  requests: readonly PeerRequest[];
  /** Wanted variants of tracks that appear in `outbound`. */
  targets: readonly { trackId: string; variant: Variant }[];
  /** The present choice lasts for this time at least, in ms; 0 = no limit. */
  holdMs: number;
}

/** One side of a session: publishing or watching. Pure. */
export interface Role {
  /** Takes news of the room; returns whether `negotiate` would return something else than before. */
  handle(input: SessionInput): boolean;
  negotiate(): Negotiated;
  /** Returns the m-lines of the answer, which stands for the whole session. */
  answer(): AnswerMedia[];
}
