// Second encodings of tracks: published by one client, received by those that lack the first codec.
import { describe, expect, test } from '@jest/globals';
import { chooseTrackCodec } from '@bloom/negotiation';
import type { SessionAction } from '@bloom/rooms';
import { fuzzRuns } from '@bloom/time/testing';
import type { OfferedMedia } from '@bloom/webrtc';
import fc from 'fast-check';
import { peerEndpoint, ScriptedClient, videoTrack } from '../testing/scripted-client.js';

/** Returns an edit that leaves the m-lines of an offer with one codec each; more m-lines keep theirs. */
const inCodecs =
  (...names: string[]) =>
  (sdp: string): string =>
    sdp
      .split(/^(?=m=)/m)
      .map((section, at) => {
        const name = names[at - 1];
        if (name === undefined || !section.startsWith('m=video')) return section;
        return section
          .replace(' 96 97 108\r', ' 96 97\r')
          .replace(/a=(rtpmap|fmtp):108.*\r\n/g, '')
          .replace('VP8', name);
      })
      .join('');

/** A client with an outstanding `offerData` whose first m-line offers VP9, and its second one VP8. */
function publisher(features: readonly string[] = ['fallback', 'codecs']): ScriptedClient {
  const client = new ScriptedClient().joinWith(features, peerEndpoint('a', videoTrack('a:v')));
  client.custom('renegotiateTracks');
  client.heard();
  client.asked();
  client.editOffer = inCodecs('VP9', 'VP8');
  return client;
}

/** A client that offers a track and its second encoding. */
function withSecond(features?: readonly string[]): ScriptedClient {
  const client = publisher(features);
  client.publish('me:v', 'video');
  client.fallbacks.set(client.sendMore(), 'me:v');
  return client;
}

const published = (actions: readonly SessionAction[]): unknown[] =>
  actions.flatMap((action) =>
    action.type === 'publish' ? action.tracks.map(({ trackId, codec, fallback }) => [trackId, codec, fallback]) : [],
  );
const inbound = ({ negotiation }: ScriptedClient): unknown[] =>
  negotiation.inbound.map(({ trackId, mid, codec, fallback = false }) => [trackId, mid, codec.name, fallback]);

describe('a publisher', () => {
  test('publishes one track with both codecs, and the media plane gets both encodings under its id', async () => {
    const client = withSecond();
    await client.sendOffer();
    expect(published(client.asked())).toEqual([['me:v', 'vp9', 'vp8']]);
    expect(inbound(client)).toEqual([
      ['me:v', '0', 'vp9', false],
      ['me:v', '1', 'vp8', true],
    ]);
    await client.negotiated();
    expect(client.directions()).toEqual(['recvonly', 'recvonly', 'sendonly']);
    expect(client.heard()[0]).toBe('sdpAnswer {"0":"me:v","2":"a:v"}');
  });

  test('is told when the second encoding is needed, and when it no longer is', async () => {
    const client = withSecond();
    await client.cycle();
    client.heard();
    for (const wanted of [true, false]) {
      client.input({ type: 'fallbackWanted', peerId: 'me', trackId: 'me:v', wanted });
    }
    expect(client.takeEvents().map(({ type, data }) => [type, data])).toEqual([
      ['fallbackWanted', { trackId: 'me:v', wanted: true }],
      ['fallbackWanted', { trackId: 'me:v', wanted: false }],
    ]);
  });

  test('keeps both in later offers, with the bitrates that it names', async () => {
    const client = withSecond();
    await client.cycle();
    client.custom('trackVariantBitrates', { trackId: 'me:v', variantBitrates: { h: 300_000 } });
    client.asked();
    client.custom('renegotiateTracks');
    await client.cycle();
    expect(published(client.asked())).toEqual([]);
    expect(client.negotiation.inbound.map(({ bitratesBps }) => bitratesBps)).toEqual([{ h: 300_000 }, { h: 300_000 }]);
  });

  test('ends both by removing the track, and nothing remains in use', async () => {
    const client = withSecond();
    await client.cycle();
    const [second] = client.fallbacks.keys();
    client.unpublish('me:v');
    client.fallbacks.clear();
    client.connection.removeTrack(second!.sender);
    client.custom('renegotiateTracks');
    await client.cycle();
    expect(client.negotiation.inbound).toEqual([]);
    expect(client.directions()).toEqual(['inactive', 'inactive', 'sendonly']);
  });

  test('loses both when the backend removes the track', async () => {
    const client = withSecond();
    await client.cycle();
    client.input({ type: 'trackRemovedByServer', trackId: 'me:v' });
    await client.cycle();
    expect(client.negotiation.inbound).toEqual([]);
    expect(client.directions()).toEqual(['inactive', 'inactive', 'sendonly']);
  });

  test('publishes the track anew when it drops the second encoding, since receivers have to know', async () => {
    const client = withSecond();
    await client.cycle();
    client.asked();
    client.fallbacks.clear();
    client.custom('renegotiateTracks');
    await client.sendOffer();
    const actions = client.asked();
    expect(actions).toContainEqual({ type: 'unpublish', trackIds: ['me:v'] });
    expect(published(actions)).toEqual([['me:v', 'vp9', undefined]]);
  });

  test('may send both in several sizes', async () => {
    const client = publisher();
    client.publish('me:v', 'video', { rids: ['l', 'm', 'h'] });
    client.fallbacks.set(client.sendMore('video', ['h', 'm', 'l']), 'me:v');
    await client.sendOffer();
    expect(client.negotiation.inbound.map(({ rids }) => rids.toSorted())).toEqual([
      ['h', 'l', 'm'],
      ['h', 'l', 'm'],
    ]);
  });

  test('is offered second encodings only where it may choose its codec', () => {
    const features = (options: ConstructorParameters<typeof ScriptedClient>[0]): unknown =>
      new ScriptedClient(options).joinWith(['fallback'], peerEndpoint('a')).takeEvents()[0]?.['data'].features;
    expect(features({})).toEqual(['fallback']);
    expect(features({ videoCodec: 'vp8' })).toBeUndefined();
  });
});

describe('a second encoding is refused, and the track published without it,', () => {
  type Change = (client: ScriptedClient) => void;
  const cases: [string, Change][] = [
    ['when it is for the track of somebody else', (client) => client.fallbacks.set(client.sendMore(), 'a:v')],
    ['when it is for no track', (client) => client.fallbacks.set(client.sendMore(), 'nobody')],
    ['when it is sound', (client) => client.fallbacks.set(client.sendMore('audio'), 'me:v')],
    [
      'when its sizes are not those of the first',
      (client) => client.fallbacks.set(client.sendMore('video', ['l']), 'me:v'),
    ],
    [
      'when it has the codec of the first',
      (client) => {
        client.fallbacks.set(client.sendMore(), 'me:v');
        client.editOffer = inCodecs('VP9', 'VP9');
      },
    ],
    [
      'when it has no codec of rooms',
      (client) => {
        client.fallbacks.set(client.sendMore(), 'me:v');
        client.editOffer = inCodecs('VP9', 'THEORA');
      },
    ],
  ];

  test.each(cases)('%s', async (_when, change) => {
    const client = publisher();
    client.publish('me:v', 'video');
    change(client);
    await client.sendOffer();
    expect(published(client.asked())).toEqual([['me:v', 'vp9', undefined]]);
    expect(inbound(client)).toEqual([['me:v', '0', 'vp9', false]]);
    await client.negotiated();
    expect(client.directions()).toEqual(['recvonly', 'inactive', 'sendonly']);
  });

  test('when the client did not say that it has any', async () => {
    const client = withSecond(['codecs']);
    await client.sendOffer();
    expect(published(client.asked())).toEqual([['me:v', 'vp9', undefined]]);
    await client.negotiated();
    expect(client.directions()).toEqual(['recvonly', 'inactive', 'sendonly']);
  });

  test('when the track has one already', async () => {
    const client = withSecond();
    client.fallbacks.set(client.sendMore(), 'me:v');
    client.editOffer = inCodecs('VP9', 'VP8', 'H264');
    await client.sendOffer();
    expect(published(client.asked())).toEqual([['me:v', 'vp9', 'vp8']]);
    await client.negotiated();
    expect(client.directions()).toEqual(['recvonly', 'recvonly', 'inactive', 'sendonly']);
  });

  test('when it is the track itself, or another track', async () => {
    const client = publisher();
    const [one, two] = [client.publish('me:v', 'video'), client.publish('me:w', 'video')];
    client.fallbacks.set(one, 'me:w').set(two, 'me:v');
    await client.sendOffer();
    expect(published(client.asked())).toEqual([
      ['me:v', 'vp9', undefined],
      ['me:w', 'vp8', undefined],
    ]);
    client.fallbacks.set(one, 'me:v').set(two, 'me:w');
    await client.negotiated();
    client.connected();
    client.custom('renegotiateTracks');
    await client.sendOffer();
    expect(published(client.asked())).toEqual([]);
  });

  test('when the track is sound', async () => {
    const client = publisher();
    client.publish('me:a', 'audio');
    client.fallbacks.set(client.sendMore(), 'me:a');
    await client.sendOffer();
    expect(published(client.asked())).toEqual([['me:a', 'opus', undefined]]);
  });

  test.each([
    ['a list', ['me:v']],
    ['text', 'me:v'],
    ['null', null],
    ['a number for a track', { '1': 7 }],
    ['an empty id', { '1': '' }],
    ['a name of prototypes', { ['__proto__']: 'me:v', constructor: 'me:v' }],
  ])('when the list of them is %s', async (_what, fallbacks) => {
    const client = withSecond();
    const offer = JSON.parse(await client.makeOffer());
    offer.data.data.fallbacks = fallbacks;
    client.text(JSON.stringify(offer));
    expect(published(client.asked())).toEqual([['me:v', 'vp9', undefined]]);
  });
});

describe('a receiver', () => {
  const TRACK = videoTrack('a:v', { codec: 'vp9', fallback: 'vp8' });
  const slots = ({ negotiation }: ScriptedClient): unknown[] =>
    negotiation.outbound.map(({ trackId, codec }) => [trackId, codec.name]);
  const complaints = (client: ScriptedClient) => [
    ...client.heard().filter((event) => event.startsWith('trackUnavailable')),
    ...client.asked().filter(({ type }) => type === 'warn'),
  ];

  test('that lacks the first codec gets the second encoding, and no complaint', async () => {
    const client = new ScriptedClient().joinWith(['trackUnavailable'], peerEndpoint('a', TRACK));
    await client.cycle();
    expect(slots(client)).toEqual([['a:v', 'vp8']]);
    expect(client.directions()).toEqual(['sendonly']);
    expect(client.answer).toContain('a=rtpmap:96 VP8/90000');
    expect(complaints(client)).toEqual([]);
  });

  test('that has both codecs gets the first encoding', async () => {
    const client = new ScriptedClient().join(peerEndpoint('a', TRACK));
    client.editOffer = (sdp) => sdp.replace(' 96 97 108\r', ' 96 97 120\r').replace(/:108 H264/g, ':120 VP9');
    await client.cycle();
    expect(slots(client)).toEqual([['a:v', 'vp9']]);
  });

  test('that lacks both gets nothing, and is told so', async () => {
    const client = new ScriptedClient().joinWith(
      ['trackUnavailable'],
      peerEndpoint('a', videoTrack('a:v', { codec: 'vp9', fallback: 'av1' })),
    );
    await client.cycle();
    expect(slots(client)).toEqual([]);
    expect(client.heard()).toContain('trackUnavailable a:v NO_CODEC');
  });

  test('gets the first codec of a track that it has, and nothing if it has neither', () => {
    const name = fc.constantFrom('vp8', 'vp9', 'av1', 'h265');
    const lineWith = (names: readonly string[]) => {
      const codecs = names.map((encodingName, i) => {
        return { payloadType: i, encodingName, name: encodingName, clockRate: 90_000, parameters: '', feedback: [] };
      });
      return { mid: '0', kind: 'video', direction: 'recvonly', refused: false, codecs } as unknown as OfferedMedia;
    };
    fc.assert(
      fc.property(fc.uniqueArray(name), name, fc.option(name, { nil: undefined }), (offered, codec, fallback) => {
        const wanted = [codec, ...(fallback === undefined ? [] : [fallback])];
        const chosen = chooseTrackCodec(lineWith(offered), { codec, fallback });
        expect(chosen?.name).toBe(wanted.find((each) => offered.includes(each)));
      }),
      { numRuns: fuzzRuns(200) },
    );
  });

  test('is told of one track, in the words of any other', () => {
    const announced = (track: Parameters<typeof peerEndpoint>[1]) =>
      new ScriptedClient().joinWith(['trackState'], peerEndpoint('a', track!)).takeEvents().slice(0, 2);
    expect(announced(TRACK)).toEqual(announced(videoTrack('a:v', { codec: 'vp9' })));
  });
});
