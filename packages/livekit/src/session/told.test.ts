// What a client is told of connections, and of layers that nobody needs.
import { describe, expect, test } from '@jest/globals';
import { ConnectionQuality, TrackSource, TrackType, VideoQuality } from '@livekit/protocol';
import { toSession } from './session-message.js';
import { sidOf } from '../names.js';
import { native, ScriptedClient } from '../testing/scripted-client.js';

const { LOW, MEDIUM, HIGH } = VideoQuality;

describe('qualities of connections', () => {
  const tick = { type: 'timer', name: 'quality' } as const;
  const changed = (...qualities: (readonly [endpointId: string, quality: 'excellent' | 'good' | 'poor' | 'lost'])[]) =>
    ({ type: 'qualitiesChanged', qualities }) as const;
  const joined = (...present: Parameters<ScriptedClient['join']>) =>
    new ScriptedClient().join(...present).input({ type: 'dtlsConnected', peerId: 'me' });
  const updates = (client: ScriptedClient) => client.heard('connectionQuality').map((each) => each?.updates);

  test('reach the client as the room has gathered them', () => {
    const client = joined([native('bob', [], 'bob')]);
    client.took('setTimer');
    client.input(changed(['me', 'excellent'], ['bob', 'lost']));
    expect(client.took('setTimer')).toEqual([]);
    expect(updates(client)).toMatchObject([
      [
        { participantSid: sidOf('PA', 'me'), quality: ConnectionQuality.EXCELLENT, score: 4.5 },
        { participantSid: sidOf('PA', 'bob'), quality: ConnectionQuality.LOST, score: 0 },
      ],
    ]);
    client.frames = [];
    expect(updates(client.input(tick))).toEqual([]);
  });

  test('that change before the client is connected are told once it is', () => {
    const client = new ScriptedClient().join([native('bob', [], 'bob')]);
    client.input(changed(['bob', 'poor'])).input(changed(['bob', 'lost']));
    expect(updates(client)).toEqual([]);
    client.took('setTimer');
    client.input({ type: 'dtlsConnected', peerId: 'me' });
    expect(client.took('setTimer')).toEqual([{ type: 'setTimer', name: 'quality', ms: 500 }]);
    expect(updates(client)).toEqual([]);
    expect(updates(client.input(tick))).toMatchObject([[{ quality: ConnectionQuality.LOST }]]);
  });

  test('of those present are told to a client that joins, once it is connected', () => {
    const client = new ScriptedClient().join([{ ...native('bob', [], 'bob'), quality: 'good' }]);
    expect(client.took('setTimer').map(({ name }) => name)).not.toContain('quality');
    client.input({ type: 'dtlsConnected', peerId: 'me' });
    expect(client.took('setTimer').map(({ name }) => name)).toContain('quality');
    expect(updates(client.input(tick))).toMatchObject([[{ quality: ConnectionQuality.GOOD }]]);
  });

  test('of somebody who has left, or whom the client does not see, are not told', () => {
    const client = joined([native('bob', [], 'bob')]);
    client.input({ type: 'endpointRemoved', endpointId: 'bob' });
    client.input(changed(['bob', 'poor'], ['nobody', 'poor']));
    expect(updates(client.input(tick))).toEqual([]);
  });

  test('are repeated to a client that has resumed', () => {
    const client = joined([native('bob', [], 'bob')]);
    client.input(changed(['bob', 'poor']));
    client.frames = [];
    client.input({ type: 'clientEvent', text: toSession.resume() });
    expect(updates(client)).toMatchObject([[{ quality: ConnectionQuality.POOR }]]);
  });
});

describe('layers that nobody needs', () => {
  function publisher(): { client: ScriptedClient; trackId: string; sid: string } {
    const client = new ScriptedClient().join();
    const request = { cid: 'cam', type: TrackType.VIDEO, source: TrackSource.CAMERA };
    client.request({ case: 'addTrack', value: request as never });
    client.offer([{ kind: 'video', direction: 'sendonly', cid: 'cam', rids: ['q', 'h', 'f'] }]);
    const [published] = client.took('publish');
    const trackId = published?.tracks[0]?.trackId ?? '';
    client.frames = [];

    return { client, trackId, sid: sidOf('TR', trackId) };
  }
  const qualities = (enabled: readonly boolean[]) =>
    [LOW, MEDIUM, HIGH].map((quality, i) => expect.objectContaining({ quality, enabled: enabled[i] }));

  test.each([
    ['h', [true, true, true]],
    ['m', [true, true, false]],
    ['l', [true, false, false]],
    [null, [false, false, false]],
  ] as const)('are named to the publisher if the highest needed one is %s', (highest, enabled) => {
    const { client, trackId, sid } = publisher();
    client.input({ type: 'layersNeeded', peerId: 'me', trackId, highest });
    const subscribedQualities = qualities(enabled);
    expect(client.heard('subscribedQualityUpdate')).toMatchObject([
      { trackSid: sid, subscribedQualities, subscribedCodecs: [{ codec: 'vp8', qualities: subscribedQualities }] },
    ]);
  });

  test('are named again to a publisher that has resumed', () => {
    const { client, trackId } = publisher();
    client.input({ type: 'layersNeeded', peerId: 'me', trackId, highest: 'l' });
    client.frames = [];
    client.input({ type: 'clientEvent', text: toSession.resume() });
    expect(client.heard('subscribedQualityUpdate')).toHaveLength(1);
  });

  test('of a track that the client does not publish concern nobody', () => {
    const { client } = publisher();
    client.input({ type: 'layersNeeded', peerId: 'me', trackId: 'other', highest: null });
    expect(client.heard('subscribedQualityUpdate')).toEqual([]);
  });

  test('are asked for with simulcast only: a client with one encoding takes it for the lowest', () => {
    const client = new ScriptedClient().join();
    const request = { cid: 'cam', type: TrackType.VIDEO, source: TrackSource.CAMERA };
    client.request({ case: 'addTrack', value: request as never });
    client.offer([{ kind: 'video', direction: 'sendonly', cid: 'cam' }]);
    const [negotiate] = client.took('negotiate');
    expect(negotiate?.negotiation.inbound[0]?.stopsUnneeded).toBeUndefined();
  });
});

describe('a client that returns through another node', () => {
  const claims = (change: object = {}, video: object = {}) =>
    ({
      iss: 'k',
      sub: 'ann',
      exp: 9_999_999_999,
      video: { roomJoin: true, canUpdateOwnMetadata: true, ...video },
      ...change,
    }) as never;
  const resumed = (given: never): ScriptedClient => {
    const client = new ScriptedClient().join();
    client.frames = [];
    client.input({ type: 'socketLost' });

    return client.input({ type: 'clientEvent', text: toSession.resume(given) });
  };

  test('goes on, and that node learns its permissions', () => {
    const client = resumed(claims());
    expect(client.told).toMatchObject([{ type: 'grants', record: { identity: 'ann' } }]);
    expect(client.heard('reconnect')).toHaveLength(1);
  });

  test.each([
    ['of another API key', claims({ iss: 'other' })],
    ['of another identity', claims({ sub: 'bob' })],
    ['of another kind', claims({ kind: 'agent' })],
    ['that permits less', claims({}, { canPublish: false })],
  ])('starts over with a token %s', (_what, given) => {
    const client = resumed(given);
    expect(client.told).toMatchObject([{ type: 'leave' }]);
    expect(client.heard('reconnect')).toEqual([]);
  });

  test('is removed by its room if it is replaced before it returns', () => {
    const client = new ScriptedClient().join();
    client.input({ type: 'socketLost' });
    const metadata = { server: { identity: 'ann', kind: 'standard' } };
    client.input({ type: 'endpointAdded', endpoint: { id: 'new', type: 'webrtc', metadata, tracks: [] } });
    expect(client.took('end')).toEqual([{ type: 'end' }]);
    expect(client.told).toEqual([]);
  });
});
