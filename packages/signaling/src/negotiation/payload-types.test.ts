import { expect, test } from '@jest/globals';
import { peerEndpoint, ScriptedClient } from '../testing/scripted-client.js';

/** Returns a client that publishes these tracks, each with its rids. */
async function publishing(...tracks: ['audio' | 'video', string[]?][]): Promise<ScriptedClient> {
  const client = new ScriptedClient().join(peerEndpoint('a'));
  client.custom('renegotiateTracks');
  tracks.forEach(([kind, rids], i) => client.publish(`me:${i}`, kind, rids === undefined ? {} : { rids }));
  await client.cycle();

  return client;
}

const areOwn = (client: ScriptedClient): unknown[] =>
  client.negotiation.inbound.map(({ hasOwnPayloadTypes }) => hasOwnPayloadTypes);

test('payload types belong to an m-line if no other one that sends has them', async () => {
  expect(areOwn(await publishing(['audio'], ['video']))).toEqual([true, true]);
});

test('payload types of two tracks belong to neither', async () => {
  expect(areOwn(await publishing(['audio'], ['video'], ['video']))).toEqual([true, false, false]);
});

test('payload types do not belong to a track if a refused m-line sends them all the same', async () => {
  const client = await publishing(['video'], ['video', ['x', 'y']]);
  expect(client.directions()).toEqual(['recvonly', 'inactive']);
  expect(areOwn(client)).toEqual([false]);
});
