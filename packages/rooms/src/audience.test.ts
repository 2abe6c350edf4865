import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Audience, SessionInput } from './peer/peer-session.js';
import { defaultRoomConfig } from './room-service.js';
import { testNode, videoTrack, type TestNode, type TestPeer } from './testing/index.js';

let node: TestNode;

beforeEach(async () => {
  node = testNode();
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
});
afterEach(() => node.close());

async function join(name?: string, more: object = {}): Promise<TestPeer> {
  const { peer, token } = await node.rooms.addPeer('kitchen', {});
  const client = await node.connect(token);
  await client.act({ type: 'join', metadata: null, ...(name === undefined ? {} : { name }), ...more });

  return { id: peer.id, ...client };
}

/** Lets a peer publish the tracks `cam` and `mic` for this audience. */
async function publisher(audience: Audience | null): Promise<TestPeer> {
  const ann = await join('ann');
  await ann.act({ type: 'setAudience', audience });
  await ann.act({ type: 'publish', tracks: [videoTrack('cam'), videoTrack('mic')] });

  return ann;
}

/** Returns what a peer has heard of tracks since the last call. */
function heard({ socket }: TestPeer): unknown[] {
  return socket.sent
    .splice(0)
    .map((input) => input as SessionInput)
    .filter((input) => ['joined', 'tracksAdded', 'tracksRemoved', 'tracksWithheld'].includes(input.type))
    .map((input) => (input.type === 'joined' ? input.endpoints.flatMap(({ tracks }) => tracks) : input));
}

/** Returns the orders to withhold tracks, or not, since the last call. */
function withheld(): string[] {
  return node.media.commands.splice(0).flatMap((command) => /setTrackWithheld (.*)/.exec(command)?.[1] ?? []);
}

describe('the audience of a track', () => {
  test('a track is withheld from everybody who is not named, in the media plane and before it is announced', async () => {
    const bob = await join('bob');
    const eve = await join('eve');
    heard(bob);
    heard(eve);
    const ann = await publisher([['bob', 'all']]);
    expect(withheld()).toEqual([`${eve.id} cam true`, `${eve.id} mic true`]);
    expect(heard(bob)).toEqual([expect.objectContaining({ tracks: [videoTrack('cam'), videoTrack('mic')] })]);
    expect(heard(eve)).toEqual([
      {
        type: 'tracksAdded',
        endpointId: ann.id,
        tracks: [
          { ...videoTrack('cam'), withheld: true },
          { ...videoTrack('mic'), withheld: true },
        ],
      },
    ]);
  });

  test('a peer without a name learns nothing of a track that is not for all', async () => {
    const bob = await join();
    heard(bob);
    await publisher([['bob', 'all']]);
    expect(heard(bob)).toEqual([]);
    expect(withheld()).toEqual([`${bob.id} cam true`, `${bob.id} mic true`]);
  });

  test('a newcomer gets what its name is allowed, and nothing else', async () => {
    await publisher([['bob', ['cam']]]);
    withheld();
    const bob = await join('bob');
    expect(heard(bob)).toEqual([[videoTrack('cam'), { ...videoTrack('mic'), withheld: true }]]);
    expect(withheld()).toEqual([`${bob.id} mic true`]);
    const stranger = await join();
    expect(heard(stranger)).toEqual([[]]);
    expect(withheld()).toEqual([`${stranger.id} cam true`, `${stranger.id} mic true`]);
  });

  test('a change during the call stops and starts tracks, once each', async () => {
    const ann = await publisher(null);
    const bob = await join('bob');
    const stranger = await join();
    for (const each of [bob, stranger]) heard(each);
    withheld();
    await ann.act({ type: 'setAudience', audience: [['bob', ['cam']]] });
    await ann.act({ type: 'setAudience', audience: [['bob', ['cam']]] });
    expect(withheld()).toEqual([`${bob.id} mic true`, `${stranger.id} cam true`, `${stranger.id} mic true`]);
    await ann.act({ type: 'setAudience', audience: null });
    expect(withheld()).toEqual([`${bob.id} mic false`, `${stranger.id} cam false`, `${stranger.id} mic false`]);
    const endpointId = ann.id;
    expect(heard(bob)).toEqual([
      { type: 'tracksWithheld', endpointId, trackIds: ['mic'], withheld: true },
      { type: 'tracksWithheld', endpointId, trackIds: ['mic'], withheld: false },
    ]);
    expect(heard(stranger)).toEqual([
      { type: 'tracksRemoved', endpointId, trackIds: ['cam', 'mic'] },
      { type: 'tracksAdded', endpointId, tracks: [videoTrack('cam'), videoTrack('mic')] },
    ]);
  });

  test('an exempt peer receives every track', async () => {
    await publisher([]);
    const recorder = await join('recorder', { exempt: true, hidden: true });
    expect(heard(recorder)).toEqual([[videoTrack('cam'), videoTrack('mic')]]);
    expect(withheld()).toEqual([]);
  });

  test('whether somebody speaks stays with those who may hear it', async () => {
    const bob = await join('bob');
    await publisher([]);
    bob.socket.sent.splice(0);
    node.media.emit.get('kitchen')?.({ type: 'voiceActivity', trackId: 'mic', status: 'speech' });
    await node.system.idle();
    expect(bob.socket.sent).toEqual([]);
    const eve = await join('eve');
    expect(eve.socket.sent[0]).not.toHaveProperty('speaking');
  });

  test('nothing stays withheld once the track, or its receiver, has gone', async () => {
    const bob = await join('bob');
    const eve = await join('eve');
    const ann = await publisher([]);
    withheld();
    await ann.act({ type: 'unpublish', trackIds: ['cam'] });
    expect(withheld()).toEqual([`${bob.id} cam false`, `${eve.id} cam false`]);
    await eve.detach();
    expect(withheld()).toEqual([`${eve.id} mic false`]);
  });

  test('a track is removed before it is withheld from nobody', async () => {
    const bob = await join('bob');
    const ann = await publisher([]);
    node.media.commands.splice(0);
    await node.rooms.removePeer('kitchen', ann.id);
    const commands = node.media.commands.filter((command) => command.includes('mic'));
    expect(commands).toEqual([`kitchen: removeTrack ${ann.id} mic`, `kitchen: setTrackWithheld ${bob.id} mic false`]);
  });

  test('changes beyond the rate are deferred, and only the last one is made', async () => {
    const ann = await publisher([]);
    const bob = await join('bob');
    withheld();
    for (let i = 0; i < 400; i++) await ann.act({ type: 'setAudience', audience: i % 2 === 0 ? null : [] });
    const made = withheld().length;
    expect(made).toBeLessThan(600);
    await ann.act({ type: 'setAudience', audience: null });
    await node.clock.advance(1_000);
    await node.system.idle();
    expect(withheld().slice(-2)).toEqual([`${bob.id} cam false`, `${bob.id} mic false`]);
  });
});
