import { type SubscriptionPermission, SubscriptionPermissionUpdate } from '@livekit/protocol';
import type { Audience } from '@bloom/rooms';
import type { ParticipantRecord } from '../record.js';
import type { Participants, RemoteTrack } from './participants.js';
import type { Publishing } from './publishing.js';
import type { Message } from './responses.js';

/** Participants that one request may name, and tracks for each; the rest is not let in. */
const MAX_NAMED = 1_000;

/** Returns whether a client is to receive a track: not one that our own client encrypts, which it cannot decrypt. */
export function isWanted(
  { owner, gone, subscribed, allowed, info }: RemoteTrack,
  { record, autoSubscribe }: { record: ParticipantRecord; autoSubscribe: boolean },
): boolean {
  if (gone || !allowed || info.encrypted === true || owner.record.identity === record.identity) return false;

  return subscribed ?? autoSubscribe;
}

/**
 * Returns who may receive a client's tracks; null = all. Names are the identities of LiveKit participants: one that is
 * named by its sid keeps the permission when it joins again.
 */
export function audienceOf(
  { allParticipants, trackPermissions }: SubscriptionPermission,
  others: Participants,
  publishing: Publishing,
): Audience | null {
  if (allParticipants) return null;

  return trackPermissions
    .slice(0, MAX_NAMED)
    .flatMap(({ participantIdentity, participantSid, allTracks, trackSids }): Audience => {
      const participant = others.bySid(participantSid);
      const identity = participantIdentity || (participant?.isNative === true ? participant.record.identity : '');
      if (identity === '') return [];

      return [[identity, allTracks ? 'all' : publishing.trackIdsOf(trackSids.slice(0, MAX_NAMED))]];
    });
}

/** Tells the client whether it may receive a track. */
export function access({ owner, sid, allowed }: RemoteTrack): Message {
  return {
    case: 'subscriptionPermissionUpdate',
    value: new SubscriptionPermissionUpdate({ participantSid: owner.sid, trackSid: sid, allowed }),
  };
}
