import { describe, expect, test } from '@jest/globals';
import { Identifiers, Publications } from '@bloom/negotiation';
import { parseOffer } from '@bloom/webrtc';
import { audioTrack, media, peerEndpoint, ScriptedClient, videoTrack } from '../testing/scripted-client.js';

/** Returns a joined client with an outstanding `offerData`. */
function publisher(options: ConstructorParameters<typeof ScriptedClient>[0] = {}): ScriptedClient {
  const client = new ScriptedClient(options).join(peerEndpoint('a'));
  client.custom('renegotiateTracks');
  client.heard();
  client.asked();
  return client;
}

async function publish(client: ScriptedClient): Promise<void> {
  client.custom('renegotiateTracks');
  await client.cycle();
}

const failure = (reason: string) => expect.objectContaining({ type: 'fail', reason });

describe('publications', () => {
  test('publishes to the media plane first, then to the room, before the answer', async () => {
    const client = publisher();
    client.publish('me:v', 'video', { metadata: { source: 'camera' }, bitrates: 1_500_000.5 });
    await client.sendOffer();
    const [negotiate, published, ...rest] = client.asked();
    expect(negotiate).toMatchObject({
      type: 'negotiate',
      negotiation: {
        generation: 1,
        fingerprint: { algorithm: 'sha-256' },
        inbound: [
          {
            trackId: 'me:v',
            kind: 'video',
            mid: '0',
            codec: {
              name: 'vp8',
              payloadType: 96,
              clockRate: 90_000,
              rtxPayloadType: 97,
              feedback: ['ccm fir', 'nack', 'nack pli', 'transport-cc'],
            },
            extensions: { mid: 4, rid: 10, repairedRid: 11 },
            ssrc: 100_000,
            rids: [],
            bitratesBps: { h: 1_500_000.5 },
          },
        ],
        outbound: [],
      },
    });
    expect(published).toEqual({
      type: 'publish',
      tracks: [
        {
          trackId: 'me:v',
          kind: 'video',
          codec: 'vp8',
          metadata: { source: 'camera' },
          encodings: [],
          disabledEncodings: [],
          streamId: expect.any(String),
          audioLevel: false,
        },
      ],
    });
    expect(rest).toEqual([]);
    expect(client.heard()).toEqual([]);
    await client.negotiated();
    expect(client.directions()).toEqual(['recvonly']);
    expect(client.heard()[0]).toBe('sdpAnswer {"0":"me:v"}');
  });

  test('keeps a publication the same in later offers', async () => {
    const client = publisher();
    client.publish('me:v', 'video');
    await client.cycle();
    client.asked();
    await publish(client);
    expect(client.asked().map((action) => action.type)).toEqual(['negotiate']);
    expect(client.negotiation.inbound).toHaveLength(1);
  });

  test('uses default bitrates when the client gives none', async () => {
    const client = publisher();
    client.publish('me:a', 'audio');
    client.publish('me:v', 'video');
    client.publish('me:s', 'video', { rids: ['l', 'm', 'h'] });
    await client.cycle();
    expect(client.negotiation.inbound.map((track) => track.bitratesBps)).toEqual([
      { h: 35_000 },
      { h: 2_500_000 },
      { l: 150_000, m: 500_000, h: 2_500_000 },
    ]);
  });

  test('uses null metadata when the client gives none', async () => {
    const client = publisher();
    client.publish('me:v', 'video');
    await client.sendOffer();
    expect(client.asked()[1]).toMatchObject({ tracks: [{ metadata: null }] });
  });

  test.each([{ source: 'screen' }, { type: 'screensharing' }])(
    'tells the media plane that a shared screen may be still, by its metadata %p',
    async (metadata) => {
      const client = publisher();
      client.publish('me:v', 'video', { metadata });
      await client.sendOffer();
      expect(client.asked()[0]).toMatchObject({ negotiation: { inbound: [{ trackId: 'me:v', still: true }] } });
    },
  );

  test('only tracks of different kinds from the same capture share a stream', async () => {
    const client = publisher();
    client.publish('me:a', 'audio', { stream: 's' });
    client.publish('me:v', 'video', { stream: 's' });
    client.publish('me:w', 'video', { stream: 's' });
    client.publish('me:x', 'video');
    await client.sendOffer();
    const [, published] = client.asked();
    const streams = published?.type === 'publish' ? published.tracks.map((track) => track.streamId) : [];
    expect(streams[0]).toBe(streams[1]);
    expect(new Set(streams).size).toBe(3);
  });

  test('treats a sendrecv m-line as sendonly', async () => {
    const client = publisher();
    client.publish('me:v', 'video').direction = 'sendrecv';
    await client.cycle();
    expect(client.directions()).toEqual(['recvonly']);
  });
});

describe('simulcast', () => {
  test('publishes the offered rids in offer order and answers with the same ones', async () => {
    const client = publisher();
    client.publish('me:v', 'video', { rids: ['l', 'm', 'h'], bitrates: { l: 1, m: 2, h: 3, x: 4 } });
    await client.sendOffer();
    expect(client.asked()[1]).toMatchObject({ tracks: [{ encodings: ['l', 'm', 'h'], disabledEncodings: [] }] });
    expect(client.negotiation.inbound[0]).toMatchObject({ rids: ['l', 'm', 'h'], bitratesBps: { l: 1, m: 2, h: 3 } });
    expect(client.negotiation.inbound[0]).not.toHaveProperty('ssrc');
    await client.negotiated();
    expect(client.answer).toContain('a=simulcast:recv l;m;h\r\n');
  });

  test('answers a rid other than l, m and h inactive and does not publish it', async () => {
    const client = publisher();
    client.publish('me:v', 'video', { rids: ['l', 'x'] });
    await client.sendOffer();
    expect(client.asked().map((action) => action.type)).toEqual(['negotiate']);
    await client.negotiated();
    expect(client.directions()).toEqual(['inactive']);
  });

  test.each(['sdes:mid', 'sdes:rtp-stream-id'])('answers simulcast without the extension %s inactive', async (uri) => {
    const client = publisher();
    client.publish('me:v', 'video', { rids: ['l', 'h'] });
    client.editOffer = (sdp) => sdp.replaceAll(`hdrext:${uri}\r`, 'hdrext:unknown\r');
    await client.cycle();
    expect(client.directions()).toEqual(['inactive']);
    expect(client.negotiation.inbound).toEqual([]);
  });

  test('fails a peer that offers simulcast without permission', async () => {
    const client = publisher({ enableSimulcast: false });
    client.publish('me:v', 'video', { rids: ['l', 'h'] });
    await client.sendOffer();
    expect(client.asked()).toEqual([failure("Simulcast was offered, but it's not supported")]);
  });
});

describe('codecs', () => {
  test('uses the codec that the room enforces', async () => {
    const client = publisher({ videoCodec: 'h264' });
    client.publish('me:v', 'video');
    await client.cycle();
    expect(client.negotiation.inbound[0]?.codec).toMatchObject({ name: 'h264', payloadType: 108 });
    expect(client.answer).toContain('m=video 9 UDP/TLS/RTP/SAVPF 108\r\n');
  });

  test('fails a peer whose offer has no usable codec, which then neither sends nor receives', async () => {
    const client = publisher({ videoCodec: 'h264' });
    client.publish('me:v', 'video');
    client.editOffer = (sdp) => sdp.replaceAll('42e01f', '64001f');
    await client.sendOffer();
    expect(client.asked()).toEqual([failure('No supported payload types in SDP offer!')]);
    client.custom('renegotiateTracks');
    client.input({ type: 'endpointAdded', endpoint: peerEndpoint('b') });
    expect(client.heard()).toEqual([]);
    expect(client.asked()).toEqual([]);
  });

  test('replaces a track that changes its codec by another track, since subscribers negotiated the former codec', async () => {
    const client = publisher();
    client.publish('me:v', 'video');
    await client.cycle();
    client.asked();
    client.editOffer = (sdp) => sdp.replace('SAVPF 96 97 108', 'SAVPF 108 96 97');
    for (const caused of [['negotiate', 'unpublish', 'publish'], ['negotiate']]) {
      client.custom('renegotiateTracks');
      await client.cycle();
      const asked = client.asked();
      expect(asked.map(({ type }) => type)).toEqual(caused);
      if (caused.length === 1) continue;
      expect(asked[1]).toEqual({ type: 'unpublish', trackIds: ['me:v'] });
      expect(asked[2]).toMatchObject({ type: 'publish', tracks: [{ trackId: 'me:v', codec: 'h264' }] });
    }
    expect(client.directions()).toEqual(['recvonly']);
  });

  test('ignores the codec of a receiving m-line', async () => {
    const client = new ScriptedClient().join(peerEndpoint('a', videoTrack('a:v')));
    client.editOffer = (sdp) => sdp.replaceAll(/VP8|H264/g, 'VP6');
    await client.cycle();
    expect(client.directions()).toEqual(['inactive']);
  });
});

describe('removing a track', () => {
  test('removes the track of an inactive m-line missing from the map, though the answer still names it', async () => {
    const client = publisher();
    client.publish('me:v', 'video');
    client.publish('me:a', 'audio');
    await client.cycle();
    client.asked();
    client.heard();
    client.unpublish('me:v');
    client.custom('renegotiateTracks');
    await client.sendOffer();
    expect(client.asked().slice(1)).toEqual([{ type: 'unpublish', trackIds: ['me:v'] }]);
    expect(client.negotiation.inbound.map((track) => track.trackId)).toEqual(['me:a']);
    await client.negotiated();
    expect(client.directions()).toEqual(['inactive', 'recvonly']);
    expect(client.heard()).toContain('sdpAnswer {"0":"me:v","1":"me:a"}');
  });

  test('never reuses the m-line of a removed track', async () => {
    const client = publisher();
    client.publish('me:v', 'video');
    await client.cycle();
    client.unpublish('me:v');
    await publish(client);
    client.input({ type: 'tracksAdded', endpointId: 'a', tracks: [videoTrack('a:v')] });
    await publish(client);
    await client.cycle();
    expect(client.directions()).toEqual(['inactive', 'sendonly']);
  });

  test('keeps a track whose sending m-line is only missing from the map', async () => {
    const client = publisher();
    client.publish('me:v', 'video');
    await client.cycle();
    client.asked();
    for (const track of client.local.values()) track.unmapped = true;
    await publish(client);
    expect(client.asked().map((action) => action.type)).toEqual(['negotiate']);
    expect(client.directions()).toEqual(['recvonly']);
    expect(client.negotiation.inbound).toHaveLength(1);
  });

  test('keeps a track whose inactive m-line is still in the map', async () => {
    const client = publisher();
    client.publish('me:v', 'video').direction = 'sendonly';
    await client.cycle();
    client.asked();
    for (const track of client.local.values()) track.transceiver.direction = 'inactive';
    await publish(client);
    expect(client.asked().map((action) => action.type)).toEqual(['negotiate']);
    expect(client.directions()).toEqual(['inactive']);
  });

  test('keeps a single publication when an id moves to another m-line', async () => {
    const client = publisher();
    client.publish('me:v', 'video');
    await client.cycle();
    client.unpublish('me:v');
    client.publish('me:v', 'video');
    client.asked();
    await publish(client);
    expect(client.asked().map((action) => action.type)).toEqual(['negotiate']);
    expect(client.negotiation.inbound.map((track) => track.mid)).toEqual(['1']);
  });
});

describe('m-lines that are not published', () => {
  test('does not publish the 33rd track of a client', async () => {
    const client = publisher();
    for (let i = 0; i < 40; i++) client.publish(`me:${i}`, 'audio');
    await client.sendOffer();
    const published = () => client.asked().flatMap((action) => (action.type === 'publish' ? action.tracks : []));
    expect(published().map(({ trackId }) => trackId)).toEqual(Array.from({ length: 32 }, (_, i) => `me:${i}`));
    await client.negotiated();
    expect(client.directions()).toEqual([
      ...Array.from({ length: 32 }, () => 'recvonly'),
      ...Array.from({ length: 8 }, () => 'inactive'),
    ]);
  });

  test('does not publish a new track on a free m-line beside 32 that stay', async () => {
    const client = publisher();
    client.publish('me:first', 'audio');
    for (let i = 0; i < 31; i++) client.publish(`me:${i}`, 'audio');
    await client.cycle();
    client.unpublish('me:first');
    await publish(client);
    client.publish('me:31', 'audio');
    await publish(client);
    client.asked();
    client.publish('me:32', 'audio');
    await publish(client);
    expect(client.asked().map(({ type }) => type)).toEqual(['negotiate']);
  });

  test('does not publish a sending m-line that was never named', async () => {
    const client = publisher();
    client.publish('me:v', 'video');
    for (const track of client.local.values()) track.unmapped = true;
    await client.cycle();
    expect(client.directions()).toEqual(['inactive']);
    expect(client.asked().map((action) => action.type)).toEqual(['negotiate']);
    expect(client.heard()[0]).toBe('sdpAnswer {}');
  });

  test("does not publish a track under the id of another endpoint's track", async () => {
    const client = new ScriptedClient().join(peerEndpoint('a', audioTrack('a:a')));
    client.publish('a:a', 'audio');
    client.heard();
    await client.cycle();
    expect(client.directions()).toEqual(['inactive', 'sendonly']);
    expect(client.heard()[0]).toBe('sdpAnswer {"1":"a:a"}');
  });

  test('does not publish the second of two m-lines with the same id', async () => {
    const client = publisher();
    client.publish('me:v', 'video');
    client.publish('other', 'video');
    const offer = (await client.makeOffer()).replaceAll('"1":"other"', '"1":"me:v"');
    client.text(offer);
    await client.negotiated();
    expect(client.directions()).toEqual(['recvonly', 'inactive']);
    expect(client.negotiation.inbound).toHaveLength(1);
  });

  test('does not publish anything on an m-line that the server sends on', async () => {
    const client = new ScriptedClient().join(peerEndpoint('a', videoTrack('a:v')));
    await client.cycle();
    client.asked();
    client.custom('renegotiateTracks');
    const offer = (await client.makeOffer())
      .replace('a=recvonly', 'a=sendonly')
      .replace('"midToTrackId":{}', '"midToTrackId":{"0":"me:v"}');
    client.text(offer);
    client.input({ type: 'negotiated', generation: client.negotiation.generation });
    expect(client.directions()).toEqual(['inactive']);
    expect(client.asked().map((action) => action.type)).toEqual(['negotiate']);
  });
});

describe('changes without a cycle', () => {
  async function simulcaster(): Promise<ScriptedClient> {
    const client = publisher();
    client.publish('me:s', 'video', { rids: ['l', 'm', 'h'], metadata: 1 });
    await client.cycle();
    client.asked();
    return client;
  }

  test('passes on track metadata only when they differ', async () => {
    const client = await simulcaster();
    client.event('updateTrackMetadata', { trackId: 'me:s', trackMetadata: 1 });
    client.event('updateTrackMetadata', { trackId: 'me:s', trackMetadata: { two: 2 } });
    client.event('updateTrackMetadata', { trackId: 'me:s', trackMetadata: { two: 2 } });
    expect(client.asked()).toEqual([{ type: 'setTrackMetadata', trackId: 'me:s', metadata: { two: 2 } }]);
  });

  test('handles a flood of repeated encodings with one action and no warning', async () => {
    const client = await simulcaster();
    for (let n = 0; n < 1000; n++) {
      client.event('disableTrackEncoding', { trackId: 'me:s', encoding: 'm' });
      client.event('disableTrackEncoding', { trackId: 'unknown', encoding: 'm' });
      client.event('enableTrackEncoding', { trackId: 'me:s', encoding: 'h' });
    }
    expect(client.asked()).toEqual([{ type: 'setEncoding', trackId: 'me:s', encoding: 'm', enabled: false }]);
    client.event('enableTrackEncoding', { trackId: 'me:s', encoding: 'm' });
    expect(client.asked()).toEqual([{ type: 'setEncoding', trackId: 'me:s', encoding: 'm', enabled: true }]);
  });

  test('ignores an encoding of a track without simulcast', async () => {
    const client = publisher();
    client.publish('me:v', 'video');
    await client.cycle();
    client.asked();
    client.event('disableTrackEncoding', { trackId: 'me:v', encoding: 'h' });
    expect(client.asked()).toEqual([]);
  });

  test('passes on a mute once', async () => {
    const client = await simulcaster();
    client.event('muteTrack', { trackId: 'me:s' });
    client.event('muteTrack', { trackId: 'me:s' });
    client.event('unmuteTrack', { trackId: 'me:s' });
    expect(client.asked()).toEqual([
      { type: 'setTrackMuted', trackId: 'me:s', muted: true },
      media({ type: 'setTrackMuted', peerId: 'me', trackId: 'me:s', muted: true }),
      { type: 'setTrackMuted', trackId: 'me:s', muted: false },
      media({ type: 'setTrackMuted', peerId: 'me', trackId: 'me:s', muted: false }),
    ]);
  });

  test('merges bitrates into the known ones and keeps them for the next cycle', async () => {
    const client = await simulcaster();
    client.custom('trackVariantBitrates', { trackId: 'me:s', variantBitrates: { l: 1000, q: 5, m: 'x' } });
    client.custom('trackVariantBitrates', { trackId: 'me:s', variantBitrates: 9000 });
    expect(client.asked()).toEqual([
      media({ type: 'setTrackBitrates', peerId: 'me', trackId: 'me:s', bitratesBps: { l: 1000 } }),
      media({ type: 'setTrackBitrates', peerId: 'me', trackId: 'me:s', bitratesBps: { h: 9000 } }),
    ]);
    await publish(client);
    expect(client.negotiation.inbound[0]?.bitratesBps).toEqual({ l: 1000, m: 500_000, h: 9000 });
  });

  test.each([
    ['updateTrackMetadata', { trackId: 'a:v', trackMetadata: 1 }],
    ['muteTrack', { trackId: 'a:v' }],
    ['trackVariantBitrates', { trackId: 'a:v', variantBitrates: 1 }],
  ])("ignores %s for another client's track", async (type, data) => {
    const client = new ScriptedClient().join(peerEndpoint('a', videoTrack('a:v')));
    await client.cycle();
    client.asked();
    client.event(type, data);
    expect(client.asked().map((action) => action.type)).toEqual(['warn']);
  });
});

describe('unusable offers', () => {
  test.each([
    ['is no SDP', () => 'nonsense'],
    ['has no ICE credentials', (sdp: string) => sdp.replaceAll(/a=ice-.*\r\n/g, '')],
    ['has no fingerprint', (sdp: string) => sdp.replaceAll(/a=fingerprint.*\r\n/g, '')],
    ['has no m-line', (sdp: string) => sdp.slice(0, sdp.indexOf('m='))],
  ])('fails the peer when its offer %s', async (_what, edit) => {
    const client = publisher();
    client.publish('me:v', 'video');
    client.editOffer = edit;
    await client.sendOffer();
    expect(client.asked()).toEqual([
      expect.objectContaining({ type: 'warn', event: 'offer.invalid' }),
      failure('Invalid SDP offer'),
    ]);
  });
});

test('includes the last offer and its answer in reports', async () => {
  const client = publisher();
  client.publish('me:v', 'video');
  await client.sendOffer();
  expect(Object.keys(client.session.descriptions())).toEqual(['offer']);
  await client.negotiated();
  const { offer, answer } = client.session.descriptions();
  expect(offer).toContain('a=sendonly');
  expect(answer).toContain('a=recvonly');
});

test('forgets the m-lines of former offers', async () => {
  const client = publisher();
  client.publish('me:v', 'video');
  const { sdp } = JSON.parse(await client.makeOffer()).data.data.sdpOffer;
  const publications = new Publications({
    videoCodec: null,
    enableSimulcast: true,
    mayPublish: () => true,
    identifiers: new Identifiers((n) => Uint8Array.from({ length: n }, () => 7)),
  });
  const mids = Array.from({ length: 100 }, (_, at) => `m${at}`);
  for (const mid of mids) {
    const renamed = sdp
      .replace(/^a=mid:.*\r$/gm, `a=mid:${mid}\r`)
      .replace(/^a=group:.*\r$/gm, `a=group:BUNDLE ${mid}\r`);
    const offer = { type: 'sdpOffer', sdp: '', metadata: new Map(), bitrates: new Map() } as const;
    publications.accept(
      parseOffer(renamed).media,
      { ...offer, midToTrackId: new Map([[mid, `track of ${mid}`]]) },
      { trackId: () => false, mid: () => false },
    );
  }
  expect(mids.filter((mid) => publications.lastTrackId(mid) !== undefined)).toEqual(['m99']);
});
