import { describe, expect, test } from '@jest/globals';
import { audioTrack, peerEndpoint, ScriptedClient, videoTrack } from '../testing/scripted-client.js';

const add = (...trackIds: string[]) =>
  ({ type: 'tracksAdded', endpointId: 'a', tracks: trackIds.map((trackId) => videoTrack(trackId)) }) as const;
const remove = (...trackIds: string[]) => ({ type: 'tracksRemoved', endpointId: 'a', trackIds }) as const;
const gone = { type: 'endpointRemoved', endpointId: 'a' } as const;
const joined = (...trackIds: string[]) =>
  new ScriptedClient().join(peerEndpoint('a', ...trackIds.map((trackId) => videoTrack(trackId))));

async function receiving(...trackIds: string[]): Promise<ScriptedClient> {
  const client = joined(...trackIds);
  await client.cycle();
  client.heard();
  return client;
}

describe('removed tracks', () => {
  test('announces a removed track right before its offerData and answers it inactive with its id', async () => {
    const client = await receiving('a:v');
    client.input(remove('a:v'));
    expect(client.heard()).toEqual(['tracksRemoved a: a:v', 'offerData audio 0 video 1']);
    await client.cycle();
    expect(client.directions()).toEqual(['inactive']);
    expect(client.heard()).toEqual(['sdpAnswer {"0":"a:v"}', 'candidate']);
  });

  test('announces a removed track only once', async () => {
    const client = await receiving('a:v');
    client.input(remove('a:v'));
    client.input(remove('a:v'));
    await client.cycle();
    client.input(remove('a:v'));
    client.input(gone);
    expect(client.heard().filter((event) => event.startsWith('tracksRemoved'))).toHaveLength(1);
  });

  test('announces a removal once the client has had time to apply the answer that named the track', async () => {
    const client = await receiving('a:v');
    client.input({ type: 'tracksAdded', endpointId: 'a', tracks: [videoTrack('a:w')] });
    await client.sendOffer();
    client.input({ type: 'negotiated', generation: client.negotiation.generation });
    // Chromium may start the checks of a restart before the answer arrives.
    client.input({ type: 'iceConnected', peerId: 'me', generation: client.negotiation.generation });
    client.heard();
    client.input(remove('a:w'));
    expect(client.heard()).toEqual([]);
    client.input({ type: 'timer', name: 'apply' });
    expect(client.heard()).toEqual(['tracksRemoved a: a:w', 'offerData audio 0 video 2']);
  });

  test('announces a removal with the next cycle when the client has sent another offer', async () => {
    const client = await receiving('a:v');
    const add = (trackId: string) =>
      client.input({ type: 'tracksAdded', endpointId: 'a', tracks: [videoTrack(trackId)] });
    add('a:w');
    await client.sendOffer();
    await client.negotiated();
    client.input({ type: 'iceConnected', peerId: 'me', generation: client.negotiation.generation });
    add('a:x');
    client.input(remove('a:w'));
    client.heard();
    await client.sendOffer();
    await client.negotiated();
    client.input({ type: 'iceConnected', peerId: 'me', generation: client.negotiation.generation });
    expect(client.heard().slice(-2)).toEqual(['tracksRemoved a: a:w', 'offerData audio 0 video 3']);
  });

  test('answers a track removed before its answer inactive, and announces the removal in a further cycle', async () => {
    const client = joined('a:v', 'a:w');
    client.heard();
    client.input(remove('a:v'));
    expect(client.heard()).toEqual([]);
    await client.cycle();
    expect(client.directions()).toEqual(['inactive', 'sendonly']);
    expect(client.heard()).toEqual([
      'sdpAnswer {"0":"a:v","1":"a:w"}',
      'candidate',
      'tracksRemoved a: a:v',
      'offerData audio 0 video 2',
    ]);
  });

  test('answers a track inactive even when it is removed while the media plane applies the offer', async () => {
    const client = joined('a:v');
    await client.sendOffer();
    client.input(remove('a:v'));
    await client.negotiated();
    expect(client.directions()).toEqual(['inactive']);
  });

  test('announces a track removed after the answer in the next cycle', async () => {
    const client = joined('a:v');
    await client.sendOffer();
    await client.negotiated();
    client.heard();
    client.input(remove('a:v'));
    expect(client.heard()).toEqual([]);
    client.connected();
    expect(client.heard()).toEqual(['tracksRemoved a: a:v', 'offerData audio 0 video 1']);
  });

  test('does not remove a track announced without an offer until an answer has named it', async () => {
    const client = joined('a:v');
    client.input({ type: 'timer', name: 'offer' });
    client.input(remove('a:v'));
    client.heard();
    client.input({ type: 'timer', name: 'retry' });
    expect(client.heard()).toEqual(['offerData audio 0 video 1']);
    await client.cycle();
    expect(client.heard()).toEqual([
      'sdpAnswer {"0":"a:v"}',
      'candidate',
      'tracksRemoved a: a:v',
      'offerData audio 0 video 1',
    ]);
  });

  test('drops a track silently if it was never announced', async () => {
    const client = joined('a:v');
    client.input(add('a:w'));
    client.input(remove('a:w'));
    await client.cycle();
    expect(client.heard().slice(3)).toEqual(['sdpAnswer {"0":"a:v"}', 'candidate']);
  });

  test('removes a track first when it returns under the same id, and gives it another m-line', async () => {
    const client = await receiving('a:v');
    client.input(remove('a:v'));
    client.input(add('a:v'));
    await client.cycle();
    expect(client.heard()).toEqual([
      'tracksRemoved a: a:v',
      'offerData audio 0 video 1',
      'sdpAnswer {"0":"a:v"}',
      'candidate',
      'tracksAdded a: a:v',
      'offerData audio 0 video 1',
    ]);
    await client.cycle();
    expect(client.directions()).toEqual(['sendonly']);
  });
});

test('does not let a dead m-line claim a track that has returned on another one', async () => {
  const client = await receiving('a:1', 'a:2');
  client.input(remove('a:1', 'a:2'));
  await client.cycle();
  client.input(add('a:2'));
  client.heard();
  await client.cycle();
  expect(client.directions()).toEqual(['sendonly', 'inactive']);
  expect(client.heard()).toEqual(['sdpAnswer {"0":"a:2"}', 'candidate']);
});

describe('leaving endpoints', () => {
  test('removes the tracks of a leaving endpoint first, then the endpoint, then starts one cycle', async () => {
    const client = await receiving('a:v', 'a:w');
    client.input(gone);
    expect(client.heard()).toEqual(['tracksRemoved a: a:v a:w', 'endpointRemoved a', 'offerData audio 0 video 2']);
    await client.cycle();
    expect(client.directions()).toEqual(['inactive', 'inactive']);
    expect(client.heard()).toEqual(['sdpAnswer {"0":"a:v","1":"a:w"}', 'candidate']);
  });

  test('removes a leaving endpoint without tracks at once and without a cycle, even during one', () => {
    const client = new ScriptedClient().join(peerEndpoint('a'), peerEndpoint('b', videoTrack('b:v')));
    client.heard();
    client.input(gone);
    expect(client.heard()).toEqual(['endpointRemoved a']);
  });

  test('removes an endpoint with unannounced tracks silently', async () => {
    const client = new ScriptedClient().join(peerEndpoint('a'), peerEndpoint('b', videoTrack('b:v')));
    client.input(add('a:v'));
    client.heard();
    client.input(gone);
    await client.cycle();
    expect(client.heard()).toEqual(['endpointRemoved a', 'sdpAnswer {"0":"b:v"}', 'candidate']);
  });

  test('removes an endpoint that leaves during a cycle when the cycle ends', async () => {
    const client = joined('a:v');
    client.heard();
    client.input(gone);
    await client.sendOffer();
    await client.negotiated();
    expect(client.heard()).toEqual(['sdpAnswer {"0":"a:v"}', 'candidate']);
    client.connected();
    expect(client.heard()).toEqual(['tracksRemoved a: a:v', 'endpointRemoved a', 'offerData audio 0 video 1']);
  });

  test('announces an endpoint that returns with the same id after its removal, in its latest state', async () => {
    const client = joined('a:v');
    client.heard();
    client.input(gone);
    client.input({ type: 'endpointAdded', endpoint: peerEndpoint('a') });
    client.input({ type: 'endpointUpdated', endpointId: 'a', metadata: 'later' });
    client.input(add('a:new'));
    expect(client.heard()).toEqual([]);
    await client.cycle();
    const events = client.takeEvents();
    expect(events.map((event) => event['type'])).toEqual([
      'sdpAnswer',
      'candidate',
      'tracksRemoved',
      'endpointRemoved',
      'endpointAdded',
      'tracksAdded',
      'offerData',
    ]);
    expect(events[4]?.['data']).toEqual({ id: 'a', type: 'webrtc', metadata: 'later' });
    await client.cycle();
    expect(client.heard()).toEqual(['sdpAnswer {"0":"a:new"}', 'candidate']);
  });

  test('does not announce an endpoint that returns only briefly', async () => {
    const client = joined('a:v');
    client.input(gone);
    client.input({ type: 'endpointAdded', endpoint: peerEndpoint('a', videoTrack('a:new')) });
    client.input(gone);
    client.heard();
    await client.cycle();
    await client.cycle();
    expect(client.heard()).toEqual([
      'sdpAnswer {"0":"a:v"}',
      'candidate',
      'tracksRemoved a: a:v',
      'endpointRemoved a',
      'offerData audio 0 video 1',
      'sdpAnswer {"0":"a:v"}',
      'candidate',
    ]);
  });
});

describe('slots', () => {
  test('counts dead slots too, so that the count of a kind never falls', async () => {
    const client = await receiving('a:1', 'a:2');
    client.input(remove('a:1', 'a:2'));
    await client.cycle();
    client.heard();
    client.input({ type: 'tracksAdded', endpointId: 'a', tracks: [audioTrack('a:a')] });
    expect(client.heard().at(-1)).toBe('offerData audio 1 video 2');
  });

  test('reuses a slot after an answer made it inactive, with new SSRCs and a new name', async () => {
    const client = await receiving('a:1');
    const [before] = client.negotiation.outbound;
    const msid = /a=msid:.*/.exec(client.answer)?.[0];
    client.input(remove('a:1'));
    await client.cycle();
    client.input(add('a:2'));
    await client.cycle();
    const [after] = client.negotiation.outbound;
    expect(after).toMatchObject({ mid: before?.mid, trackId: 'a:2' });
    expect(after?.ssrc).not.toBe(before?.ssrc);
    expect(after?.rtxSsrc).not.toBe(before?.rtxSsrc);
    expect(client.directions()).toEqual(['sendonly']);
    expect(/a=msid:.*/.exec(client.answer)?.[0]).not.toBe(msid);
  });

  test('does not reuse a slot in the cycle that ends its track', async () => {
    const client = await receiving('a:1');
    client.input(remove('a:1'));
    client.input(add('a:2'));
    await client.cycle();
    await client.cycle();
    // Sendonly, inactive, sendonly: a browser fires no track event without the inactive answer between.
    expect(client.negotiation.outbound.map((slot) => `${slot.mid} ${slot.trackId}`)).toEqual(['0 a:2']);
  });

  test('does not reuse a slot while the client may have failed to apply the inactive answer', async () => {
    const client = await receiving('a:1');
    client.input(remove('a:1'));
    const late = await client.makeOffer();
    client.input({ type: 'timer', name: 'offer' });
    client.input({ type: 'timer', name: 'retry' });
    const crossing = await client.makeOffer();
    client.text(late);
    client.input({ type: 'negotiated', generation: client.negotiation.generation });
    // The client has set this offer. The answer belongs to another offer and fits only by chance.
    client.text(crossing);
    client.input(add('a:2'));
    client.heard();
    client.connected();
    expect(client.heard()).toEqual(['tracksAdded a: a:2', 'offerData audio 0 video 2']);
    await client.cycle();
    expect(client.directions()).toEqual(['inactive', 'sendonly']);
    client.input(add('a:3'));
    await client.cycle();
    expect(client.negotiation.outbound.map((slot) => `${slot.mid} ${slot.trackId}`)).toEqual(['0 a:3', '1 a:2']);
  });

  test("keeps a slot's mid, SSRCs and names for the lifetime of its track", async () => {
    const client = await receiving('a:1');
    const { outbound } = client.negotiation;
    const msid = /a=msid:.*/.exec(client.answer)?.[0];
    client.custom('renegotiateTracks');
    await client.cycle();
    expect(client.negotiation.outbound).toEqual(outbound);
    expect(client.answer).toContain(msid);
  });

  test('assigns the receiving m-lines of a kind to its slots in order', async () => {
    const client = new ScriptedClient().join(
      peerEndpoint('a', videoTrack('a:v1'), audioTrack('a:a1'), videoTrack('a:v2')),
    );
    client.publish('me:v', 'video');
    await client.cycle();
    expect(client.heard()).toContain('sdpAnswer {"0":"me:v","1":"a:a1","2":"a:v1","3":"a:v2"}');
  });

  test('never gives two slots the same SSRC', async () => {
    const client = await receiving(...Array.from({ length: 40 }, (_, n) => `a:${n}`));
    const ssrcs = client.negotiation.outbound.flatMap((slot) => [slot.ssrc, slot.rtxSsrc]);
    expect(new Set(ssrcs).size).toBe(80);
  });

  test('answers surplus m-lines as inactive and leaves them out of the map', async () => {
    const client = joined('a:v');
    client.spare = 1;
    client.heard();
    await client.cycle();
    expect(client.directions()).toEqual(['inactive', 'sendonly', 'inactive']);
    expect(client.heard()[0]).toBe('sdpAnswer {"1":"a:v"}');
  });

  test('answers a slot inactive while the client does not offer its codec', async () => {
    const client = joined('a:v');
    client.editOffer = (sdp) => sdp.replaceAll('VP8', 'VP6');
    client.heard();
    await client.cycle();
    expect(client.directions()).toEqual(['inactive']);
    expect(client.negotiation.outbound).toEqual([]);
    expect(client.heard()[0]).toBe('sdpAnswer {"0":"a:v"}');
    client.editOffer = (sdp) => sdp;
    client.custom('renegotiateTracks');
    await client.cycle();
    expect(client.directions()).toEqual(['sendonly']);
    expect(client.negotiation.outbound).toHaveLength(1);
  });

  test('sends H264 under a payload type that every decoder accepts', async () => {
    const client = new ScriptedClient().join(peerEndpoint('a', videoTrack('a:v', { codec: 'h264' })));
    await client.cycle();
    expect(client.negotiation.outbound[0]?.codec).toEqual({
      name: 'h264',
      payloadType: 108,
      clockRate: 90_000,
      feedback: [],
    });
  });

  test('offers the audio level only for a track that has one', async () => {
    const client = new ScriptedClient().join(
      peerEndpoint('a', audioTrack('a:1', { audioLevel: true }), audioTrack('a:2', { audioLevel: false })),
    );
    await client.cycle();
    expect(client.negotiation.outbound.map((slot) => slot.extensions)).toEqual([{ mid: 4, audioLevel: 1 }, { mid: 4 }]);
  });

  test('puts tracks captured together into one stream, and other tracks into their own', async () => {
    const client = new ScriptedClient().join(
      peerEndpoint('a', audioTrack('a:a', { streamId: 's' }), videoTrack('a:v', { streamId: 's' }), videoTrack('a:w')),
    );
    await client.cycle();
    const streams = [...client.answer.matchAll(/a=msid:(\S+) (\S+)/g)].map((match) => match.slice(1));
    expect(streams.map(([stream]) => stream === 's')).toEqual([true, true, false]);
    expect(new Set(streams.map(([, track]) => track)).size).toBe(3);
  });
});
