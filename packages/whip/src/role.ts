import type { EndpointTrack, PeerRequest, SessionInput } from '@bloom/rooms';
import type { InboundTrack, OutboundSlot, Variant } from '@bloom/sfu';
import type { AnswerMedia } from '@bloom/webrtc';

/** What a client should currently send and receive. */
export interface Negotiated {
  inbound: readonly InboundTrack[];
  outbound: readonly OutboundSlot[];
  /** Requests to carry out once the media plane has applied the negotiation. */
  requests: readonly PeerRequest[];
  /** Wanted variants of the tracks in `outbound`. */
  targets: readonly { trackId: string; variant: Variant }[];
  /** Tracks that the client wants and whose codec or, of encrypted ones, key it lacks, each for the first time. */
  lacking: readonly EndpointTrack[];
  /** Minimum time to keep the current choice, in ms; 0 = no minimum. */
  holdMs: number;
}

/** One side of a session: publishing or watching. Pure. */
export interface Role {
  /** Handles an event of the room. Returns whether the result of `negotiate` has changed. */
  handle(input: SessionInput): boolean;
  negotiate(): Negotiated;
  /** Returns the m-lines of the answer, which stays the same for the whole session. */
  answer(): AnswerMedia[];
}
