// Unpublishable tracks of clients that name the `trackRefused` feature.
import { expect, test } from '@jest/globals';
import { peerEndpoint, ScriptedClient } from '../testing/scripted-client.js';

test('keeps sound and call of a client that knows refusals when its video has no usable codec', async () => {
  const client = new ScriptedClient({ videoCodec: 'h264' }).joinWith(['trackRefused'], peerEndpoint('a'));
  client.custom('renegotiateTracks');
  client.asked();
  client.publish('me:v', 'video');
  client.publish('me:a', 'audio');
  client.editOffer = (sdp) => sdp.replaceAll('42e01f', '64001f');
  await client.cycle();
  expect(client.negotiation.inbound.map(({ trackId }) => trackId)).toEqual(['me:a']);
  expect(client.directions()).toEqual(['inactive', 'recvonly']);
  expect(client.asked().some(({ type }) => type === 'fail')).toBe(false);
});

test('keeps a client that knows refusals in the call when it offers simulcast without permission', async () => {
  const client = new ScriptedClient({ enableSimulcast: false }).joinWith(['trackRefused'], peerEndpoint('a'));
  client.custom('renegotiateTracks');
  client.asked();
  client.publish('me:v', 'video', { rids: ['l', 'm', 'h'] });
  await client.cycle();
  expect(client.directions()).toEqual(['inactive']);
  expect(client.asked().some(({ type }) => type === 'fail')).toBe(false);
});
