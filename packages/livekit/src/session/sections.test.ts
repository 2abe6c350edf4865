import { expect, test } from '@jest/globals';
import { AddTrackRequest, TrackType } from '@livekit/protocol';
import { sidOf } from '../names.js';
import { directions, native, ScriptedClient, track } from '../testing/scripted-client.js';

const VIDEO = { kind: 'video', direction: 'recvonly' } as const;
const BOB = native('bob', [track('v', 'video', { encodings: ['l', 'm', 'h'] })]);

test('counts no section whose m-line the client no longer offers', () => {
  const client = new ScriptedClient().join().offer([{ ...VIDEO, mid: 'a' }]);
  client.offer([{ ...VIDEO, mid: 'b' }]);
  client.heard('answer');
  client.input({ type: 'endpointAdded', endpoint: native('bob', [track('v'), track('w')]) });
  expect(client.heard('mediaSectionsRequirement')).toMatchObject([{ numVideos: 1 }]);
});

test('moves a track whose m-line is gone to another one, and sets its layer again', () => {
  const client = new ScriptedClient().join([BOB]).offer([{ ...VIDEO, mid: 'a' }]);
  client.heard('answer');
  client.took('media');
  client.offer([{ ...VIDEO, mid: 'b' }]);
  expect(client.heard('answer')).toMatchObject([{ midToTrackId: { b: sidOf('TR', 'v') } }]);
  expect(client.took('media').map(({ command }) => command)).toMatchObject([
    { type: 'setTargetVariant', variant: 'h' },
  ]);
});

test('carries the second encoding of a track whose first codec the client lacks', () => {
  const bob = native('bob', [track('v', 'video', { codec: 'av1', fallback: 'vp8' })]);
  const client = new ScriptedClient().join([bob]).offer([{ ...VIDEO, mid: 'a' }]);
  expect(client.took('negotiate').at(-1)?.negotiation.outbound).toMatchObject([
    { trackId: 'v', codec: { name: 'vp8' } },
  ]);
  expect(client.heard('answer')).toMatchObject([{ midToTrackId: { a: sidOf('TR', 'v') } }]);
});

test('lets the client publish in a section that it has offered to receive in, and moves its track', () => {
  const client = new ScriptedClient().join([BOB]).offer([{ ...VIDEO, mid: 'a' }]);
  client.heard('answer');
  client.request({ case: 'addTrack', value: new AddTrackRequest({ cid: 'cam', type: TrackType.VIDEO }) });
  client.offer([{ ...VIDEO, mid: 'a', direction: 'sendrecv' }]);
  expect(client.took('publish')).toMatchObject([{ tracks: [{ kind: 'video' }] }]);
  expect(client.heard('mediaSectionsRequirement')).toMatchObject([{ numVideos: 1 }]);
  client.offer([
    { ...VIDEO, mid: 'a', direction: 'sendrecv' },
    { ...VIDEO, mid: 'b' },
  ]);
  const [answer] = client.heard('answer');
  expect(answer?.midToTrackId).toEqual({ b: sidOf('TR', 'v') });
  expect(directions(answer?.sdp ?? '')).toEqual(['recvonly', 'sendonly']);
});

test('applies only the newest of the offers that arrive while the media plane applies one', () => {
  const client = new ScriptedClient().join().offerOnly([VIDEO]).offerOnly([VIDEO]).offerOnly([VIDEO, VIDEO]);
  expect(client.took('negotiate')).toMatchObject([{ negotiation: { generation: 1 } }]);
  client.input({ type: 'negotiated', generation: 1 });
  expect(client.took('negotiate')).toMatchObject([{ negotiation: { generation: 2 } }]);
  client.input({ type: 'negotiated', generation: 2 });
  expect(client.heard('answer')).toMatchObject([{ id: 3 }]);
});

test('looks at no track again for data, speech, qualities and newcomers without tracks', () => {
  let looks = 0;
  const watched = track('v');
  Object.defineProperty(watched, 'encrypted', { get: () => void (looks += 1) });
  const client = new ScriptedClient().join([native('bob', [watched])]).offer([VIDEO]);
  looks = 0;
  client.input({ type: 'dataPacket', peerId: 'me', label: '_lossy', data: new Uint8Array(1) });
  client.input({ type: 'voiceActivity', trackId: 'v', status: 'speech' });
  client.input({ type: 'qualitiesChanged', qualities: [['peer-bob', 'good']] });
  client.input({ type: 'endpointAdded', endpoint: native('eve') });
  expect(looks).toBe(0);
  client.input({ type: 'endpointAdded', endpoint: native('zoe', [track('w')]) });
  expect(looks).toBeGreaterThan(0);
});
