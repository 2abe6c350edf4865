import { expect, test } from '@jest/globals';
import { peerEndpoint, ScriptedClient, videoTrack } from '../testing/scripted-client.js';

const isReport = (event: string) => event.startsWith('trackUnavailable');
const isWarning = ({ type, event }: { type: string; event?: string }) => type === 'warn' && event === 'peer.no_codec';

/** Joins a client that offers VP8 and H.264 to a room with a VP9 track. */
const withVp9 = (...features: string[]) =>
  new ScriptedClient().joinWith(features, peerEndpoint('a', videoTrack('a:v', { codec: 'vp9' })));

test('reports a track in a codec that the client does not offer once, after the answer', async () => {
  const client = withVp9('trackUnavailable');
  await client.cycle();
  expect(client.directions()).toEqual(['inactive']);
  expect(client.heard().filter(isReport)).toEqual(['trackUnavailable a:v NO_CODEC']);
  client.custom('renegotiateTracks');
  await client.cycle();
  expect(client.heard().filter(isReport)).toEqual([]);
  expect(client.asked().filter(isWarning)).toHaveLength(1);
});

test('says nothing of a missing codec to clients that do not know the event', async () => {
  const client = withVp9();
  await client.cycle();
  expect(client.heard().filter(isReport)).toEqual([]);
  expect(client.asked().filter(isWarning)).toHaveLength(1);
});

test('forwards a track in a codec that has to be asked for to a client that offers it', async () => {
  const client = withVp9('trackUnavailable');
  client.editOffer = (sdp) => sdp.replaceAll('VP8', 'VP9');
  await client.cycle();
  expect(client.directions()).toEqual(['sendonly']);
  expect(client.heard().filter(isReport)).toEqual([]);
});

test('forwards an encrypted track only to a client that decrypts', async () => {
  const join = () =>
    new ScriptedClient().joinWith(['trackUnavailable'], peerEndpoint('a', videoTrack('a:v', { encrypted: true })));
  const client = join();
  await client.cycle();
  expect(client.directions()).toEqual(['inactive']);
  expect(client.heard().filter(isReport)).toEqual(['trackUnavailable a:v NO_KEY']);
  const decrypting = join();
  const offer = JSON.parse(await decrypting.makeOffer());
  offer.data.data.encrypted = true;
  decrypting.text(JSON.stringify(offer));
  await decrypting.negotiated();
  expect(decrypting.directions()).toEqual(['sendonly']);
});

test('reports a missing codec again when the client has offered it in between', async () => {
  const client = withVp9('trackUnavailable');
  await client.cycle();
  client.editOffer = (sdp) => sdp.replaceAll('VP8', 'VP9');
  client.custom('renegotiateTracks');
  await client.cycle();
  client.heard();
  client.editOffer = (sdp) => sdp;
  client.custom('renegotiateTracks');
  await client.cycle();
  expect(client.heard().filter(isReport)).toEqual(['trackUnavailable a:v NO_CODEC']);
});

test('invites requests for a codec only to rooms that enforce none', () => {
  const features = (options: ConstructorParameters<typeof ScriptedClient>[0]): unknown =>
    new ScriptedClient(options).joinWith(['codecs'], peerEndpoint('a')).takeEvents()[0]?.['data'].features;
  expect(features({})).toEqual(['codecs']);
  expect(features({ videoCodec: 'h264' })).toBeUndefined();
});

test('marks the tracks of a client that encrypts for the room', async () => {
  const client = new ScriptedClient().join();
  client.custom('renegotiateTracks');
  client.asked();
  client.publish('me:v', 'video', {});
  const offer = JSON.parse(await client.makeOffer());
  offer.data.data.encrypted = true;
  client.text(JSON.stringify(offer));
  expect(client.asked()).toContainEqual({
    type: 'publish',
    tracks: [expect.objectContaining({ trackId: 'me:v', encrypted: true })],
  });
});
