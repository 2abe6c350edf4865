import type { Publications } from '@bloom/negotiation';
import type { parseOffer } from '@bloom/webrtc';
import type { Cycles } from './cycles.js';
import type { KnownRoom } from './known-room.js';
import type { OfferPlan } from './outbound.js';
import type { RemoteTrack } from './remote.js';
import type { Slots } from './slots.js';

/**
 * Additions to the Jellyfish protocol. `connect` names those the client supports; `connected` names those it may use.
 */
export const FEATURES: readonly string[] = [
  'pause',
  'data',
  'trackState',
  'trackRefused',
  'permissions',
  'trackUnavailable',
  'move',
  'standby',
];
/** Those of rooms that enforce no codec: others refuse a client that asks for another one. */
export const CODEC_FEATURES: readonly string[] = ['codecs', 'fallback'];

/** `new`: before `connect`, or after leaving. `joining`: waiting for the room. `failed`: ignores all further input. */
export type Phase = 'new' | 'joining' | 'joined' | 'failed';

/** State from `connect` to `disconnect`: one transport, one connection of the client. */
export interface Membership {
  others: KnownRoom;
  slots: Slots;
  publications: Publications;
  cycles: Cycles;
  metadata: unknown;
  /** Protocol additions that both sides support. */
  features: readonly string[];
  ice: { localUfrag: string; localPwd: string; remoteUfrag: string } | undefined;
  sdpSessionId: string;
  cname: string;
  /** The offer being answered. */
  offer: { plan: OfferPlan; parsed: ReturnType<typeof parseOffer> } | undefined;
  offeredSsrcs: ReadonlySet<number>;
  /** New tracks of the last answer, which the client may not have applied yet. */
  applying: readonly RemoteTrack[];
}
