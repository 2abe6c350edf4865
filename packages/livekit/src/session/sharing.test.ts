import { describe, expect, test } from '@jest/globals';
import { SubscriptionPermission, TrackSource, TrackType } from '@livekit/protocol';
import { sidOf } from '../names.js';
import { directions, native, ScriptedClient, track } from '../testing/scripted-client.js';

const VIDEO = { kind: 'video', direction: 'recvonly' } as const;
const FOREIGN = { id: 'p1', type: 'webrtc', metadata: null, tracks: [] } as const;

type Permission = ConstructorParameters<typeof SubscriptionPermission>[0];

/** Returns the audiences that a publisher's requests lead to. */
function audiences(client: ScriptedClient, ...permissions: Permission[]): unknown[] {
  client.took('setAudience');
  for (const permission of permissions)
    client.request({ case: 'subscriptionPermission', value: new SubscriptionPermission(permission) });

  return client.took('setAudience').map(({ audience }) => audience);
}

describe('a publisher', () => {
  test('lets in whom it names by identity or sid, with all tracks or some', () => {
    const client = new ScriptedClient().join([native('bob'), native('eve')]);
    const value = { cid: 'cam', type: TrackType.VIDEO, source: TrackSource.CAMERA } as never;
    client.request({ case: 'addTrack', value }).offer([{ kind: 'video', direction: 'sendonly', cid: 'cam' }]);
    const trackId = client.took('publish')[0]?.tracks[0]?.trackId ?? '';
    const trackPermissions = [
      { participantIdentity: 'later', allTracks: true },
      { participantSid: sidOf('PA', 'peer-eve'), trackSids: [sidOf('TR', trackId), 'TR_unknown'] },
    ];
    expect(audiences(client, { trackPermissions })).toEqual([
      [
        ['later', 'all'],
        ['eve', [trackId]],
      ],
    ]);
  });

  test('lets nobody in without a name, and nobody of another face by sid', () => {
    const client = new ScriptedClient().join([FOREIGN]);
    const trackPermissions = [
      { allTracks: true },
      { participantSid: 'PA_unknown', allTracks: true },
      { participantSid: sidOf('PA', 'p1'), allTracks: true },
    ];
    expect(audiences(client, { trackPermissions })).toEqual([[]]);
  });

  test('lets all in again, and says nothing of it unless it was private', () => {
    const client = new ScriptedClient().join();
    expect(audiences(client, { allParticipants: true })).toEqual([]);
    expect(audiences(client, {}, { allParticipants: true }, { allParticipants: true })).toEqual([[], null]);
  });

  test('reads at most 1,000 names of one request', () => {
    const trackPermissions = Array.from({ length: 1_001 }, (_, i) => ({ participantIdentity: `p${i}` }));
    expect(audiences(new ScriptedClient().join(), { trackPermissions })[0]).toHaveLength(1_000);
  });
});

describe('a subscriber', () => {
  const sids = { participantSid: sidOf('PA', 'peer-bob'), trackSid: sidOf('TR', 'v') };
  const withhold = (client: ScriptedClient, withheld: boolean): ScriptedClient =>
    client.input({ type: 'tracksWithheld', endpointId: 'peer-bob', trackIds: ['v'], withheld });

  test('joins under its identity, and as an exempt peer if it records', () => {
    const record = { identity: 'rec', name: '', kind: 'egress', metadata: '', attributes: {}, joinedAt: 1 } as const;
    expect(new ScriptedClient().join().took('join')).toMatchObject([{ name: 'ann' }]);
    expect(new ScriptedClient().join([], { record }).took('join')).toMatchObject([{ name: 'rec', exempt: true }]);
  });

  test('sees a track that is withheld from it, learns that it may not have it, and gets no section for it', () => {
    const client = new ScriptedClient().join([native('bob', [track('v', 'video', { withheld: true })])]);
    const frames = client.frames.map(({ case: which }) => which);
    expect(frames).toEqual(['join', 'subscriptionPermissionUpdate']);
    expect(client.heard('subscriptionPermissionUpdate')).toMatchObject([{ ...sids, allowed: false }]);
    expect(client.offer([VIDEO]).heard('answer')[0]?.midToTrackId).toEqual({});
  });

  test('is asked for an offer that ends a track as soon as it is withheld, and that brings it back', () => {
    const client = new ScriptedClient().join([native('bob', [track('v')])]).offer([VIDEO]);
    client.heard('answer');
    const frames = withhold(client, true).frames.map(({ case: which }) => which);
    expect(frames).toEqual(['subscriptionPermissionUpdate', 'mediaSectionsRequirement']);
    expect(client.heard('subscriptionPermissionUpdate')).toMatchObject([{ ...sids, allowed: false }]);
    expect(directions(client.offer([VIDEO]).heard('answer')[0]?.sdp ?? '')).toEqual(['inactive']);
    withhold(client, false);
    expect(client.heard('subscriptionPermissionUpdate')).toMatchObject([{ ...sids, allowed: true }]);
    expect(client.offer([VIDEO]).heard('answer')).toMatchObject([{ midToTrackId: { 0: sids.trackSid } }]);
  });

  test('does not get a withheld track by subscribing to it', () => {
    const client = new ScriptedClient().join([native('bob', [track('v', 'video', { withheld: true })])]);
    client.request({ case: 'subscription', value: { trackSids: [sids.trackSid], subscribe: true } as never });
    expect(client.offer([VIDEO]).heard('answer')[0]?.midToTrackId).toEqual({});
  });

  test('learns after a resume what it may have missed, and nothing of tracks that were never withheld', () => {
    const client = new ScriptedClient().join([native('bob', [track('v'), track('w')])]);
    withhold(withhold(client, true), false);
    client.heard('subscriptionPermissionUpdate');
    client.input({ type: 'clientEvent', text: 'r' });
    expect(client.heard('subscriptionPermissionUpdate')).toMatchObject([{ ...sids, allowed: true }]);
  });

  test('no longer sees somebody speak whose sound is withheld', () => {
    const client = new ScriptedClient().join([native('bob', [track('v', 'audio')])]);
    client.input({ type: 'voiceActivity', trackId: 'v', status: 'speech' });
    client.heard('speakersChanged');
    expect(withhold(client, true).heard('speakersChanged')).toMatchObject([{ speakers: [{ active: false }] }]);
  });
});
