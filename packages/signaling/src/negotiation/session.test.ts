import { describe, expect, test } from '@jest/globals';
import { audioTrack, media, peerEndpoint, ScriptedClient, videoTrack } from '../testing/scripted-client.js';

const someone = peerEndpoint('a', videoTrack('a:v'));

describe('joining', () => {
  test('sends an authenticated client nothing before its connect', () => {
    const client = new ScriptedClient();
    client.input({ type: 'endpointAdded', endpoint: someone });
    client.input({ type: 'tracksAdded', endpointId: 'a', tracks: [videoTrack('a:w')] });
    expect(client.heard()).toEqual([]);
  });

  test("asks the room to join with the client's metadata on connect", () => {
    const client = new ScriptedClient();
    client.event('connect', { metadata: { deep: [1] } });
    expect(client.asked()).toEqual([{ type: 'join', metadata: { deep: [1] }, client: 'jellyfish' }]);
  });

  test.each(['{"type":"connect"}', '{"type":"connect","data":{}}'])('treats metadata missing in %s as null', (text) => {
    const client = new ScriptedClient();
    client.text(text);
    expect(client.asked()).toEqual([{ type: 'join', metadata: null, client: 'jellyfish' }]);
  });

  test('starts no cycle when a client joins an empty room', () => {
    expect(new ScriptedClient().join().heard()).toEqual(['connected']);
  });

  test('sends connected, tracksAdded per owner and offerData together on joining a room with tracks', () => {
    const client = new ScriptedClient();
    client.event('connect', {});
    client.input({
      type: 'joined',
      endpoints: [
        peerEndpoint('a', audioTrack('a:a'), videoTrack('a:v')),
        peerEndpoint('b'),
        peerEndpoint('c', videoTrack('c:v')),
      ],
    });
    expect(client.heard()).toEqual([
      'connected',
      'tracksAdded a: a:a a:v',
      'tracksAdded c: c:v',
      'offerData audio 1 video 2',
    ]);
  });

  test('offers and answers a room with 150 audio and video publishers completely', async () => {
    const others = Array.from({ length: 150 }, (_, i) =>
      peerEndpoint(`p${i}`, audioTrack(`${i}:a`), videoTrack(`${i}:v`)),
    );
    const client = new ScriptedClient().join(...others);
    await client.cycle();
    expect(client.directions().filter((direction) => direction === 'sendonly')).toHaveLength(300);
  });

  test('sends a joining client all fields of every other endpoint, never its own', () => {
    const simulcast = videoTrack('a:v', { encodings: ['l', 'm', 'h'], disabledEncodings: ['l'], metadata: 'm' });
    const client = new ScriptedClient().join(peerEndpoint('a', simulcast, audioTrack('a:a')), peerEndpoint('me'), {
      id: 'f',
      type: 'file',
      metadata: undefined,
      tracks: [],
    });
    expect(client.takeEvents()[0]).toEqual({
      type: 'connected',
      data: {
        id: 'me',
        otherEndpoints: [
          {
            id: 'a',
            type: 'webrtc',
            metadata: { name: 'a' },
            trackIdToMetadata: { 'a:v': 'm', 'a:a': null },
            tracks: {
              'a:v': {
                metadata: 'm',
                simulcastConfig: { enabled: true, activeEncodings: ['l', 'm', 'h'], disabledEncodings: ['l'] },
              },
              'a:a': {
                metadata: null,
                simulcastConfig: { enabled: false, activeEncodings: ['h'], disabledEncodings: [] },
              },
            },
          },
          { id: 'f', type: 'file', metadata: null, trackIdToMetadata: {}, tracks: {} },
        ],
      },
    });
  });

  test('ignores a second connect on the same socket', () => {
    const client = new ScriptedClient().join();
    client.asked();
    client.event('connect', { metadata: 'other' });
    expect(client.asked()).toEqual([expect.objectContaining({ type: 'warn' })]);
  });

  test.each(['renegotiateTracks', 'disconnect', 'updateEndpointMetadata', 'muteTrack'])(
    'ignores %s before connect',
    (type) => {
      const client = new ScriptedClient();
      client.event(type, { metadata: 1, trackId: 'x' });
      expect(client.asked().map((action) => action.type)).toEqual(['warn']);
    },
  );
});

describe('leaving without closing the socket', () => {
  test('notifies the room of a leave and sends nothing more', () => {
    const client = new ScriptedClient().join(someone);
    client.heard();
    client.asked();
    client.event('disconnect');
    client.input({ type: 'endpointRemoved', endpointId: 'a' });
    expect(client.asked()).toEqual([{ type: 'leave' }]);
    expect(client.heard()).toEqual([]);
  });

  test('stops all timers on a leave', () => {
    const client = new ScriptedClient().join(someone);
    client.timers();
    client.event('disconnect');
    expect(client.timers()).toEqual(['no offer', 'no ice', 'no retry', 'no apply']);
  });

  test('allows a connect after a leave without any former state', async () => {
    const client = new ScriptedClient().join(someone);
    client.publish('me:v', 'video');
    await client.cycle();
    const { generation, ice } = client.negotiation;
    client.event('disconnect');
    const rejoined = Object.assign(client, { connection: new ScriptedClient().connection });
    rejoined.local.clear();
    rejoined.heard();
    rejoined.join(someone);
    expect(rejoined.heard()).toEqual(['connected', 'tracksAdded a: a:v', 'offerData audio 0 video 1']);
    rejoined.asked();
    await rejoined.cycle();
    expect(rejoined.negotiation).toMatchObject({ generation: generation + 1, inbound: [] });
    expect(rejoined.negotiation.ice.localUfrag).not.toBe(ice.localUfrag);
    expect(rejoined.asked().map((action) => action.type)).toEqual(['negotiate']);
  });

  test('uses only the answer to the latest join when the client leaves while joining', () => {
    const client = new ScriptedClient();
    client.event('connect', {});
    client.event('disconnect');
    client.event('connect', {});
    client.input({ type: 'joined', endpoints: [someone] });
    expect(client.heard()).toEqual([]);
    client.input({ type: 'joined', endpoints: [] });
    expect(client.heard()).toEqual(['connected']);
  });

  test('ignores what the media plane still reports about the old connection', async () => {
    const client = new ScriptedClient().join(someone);
    await client.sendOffer();
    const { generation } = client.negotiation;
    client.event('disconnect');
    client.join();
    client.heard();
    client.input({ type: 'negotiated', generation });
    expect(client.heard()).toEqual([]);
  });
});

describe('endpoints and metadata', () => {
  test('announces a joining endpoint without tracks and without a cycle', () => {
    const client = new ScriptedClient().join();
    client.heard();
    client.input({ type: 'endpointAdded', endpoint: peerEndpoint('a') });
    expect(client.takeEvents()).toEqual([
      { type: 'endpointAdded', data: { id: 'a', type: 'webrtc', metadata: { name: 'a' } } },
    ]);
  });

  test('announces an endpoint that joins with tracks before those tracks', () => {
    const client = new ScriptedClient().join();
    client.heard();
    client.input({ type: 'endpointAdded', endpoint: { ...someone, type: 'file' } });
    expect(client.heard()).toEqual(['endpointAdded a', 'tracksAdded a: a:v', 'offerData audio 0 video 1']);
  });

  test('passes on endpoint metadata at once, even during a cycle, but never for an unknown endpoint', () => {
    const client = new ScriptedClient().join(someone);
    client.heard();
    client.input({ type: 'endpointUpdated', endpointId: 'a', metadata: 7 });
    client.input({ type: 'endpointUpdated', endpointId: 'nobody', metadata: 7 });
    expect(client.takeEvents()).toEqual([{ type: 'endpointUpdated', data: { id: 'a', metadata: 7 } }]);
  });

  test("publishes the client's own metadata only when it differs", () => {
    const client = new ScriptedClient().join();
    client.asked();
    client.event('updateEndpointMetadata', { metadata: { name: 'me' } });
    client.event('updateEndpointMetadata', { metadata: { name: 'you' } });
    client.event('updateEndpointMetadata', {});
    expect(client.asked()).toEqual([
      { type: 'setMetadata', metadata: { name: 'you' } },
      { type: 'setMetadata', metadata: null },
    ]);
  });

  test('treats keys that are special in JavaScript like any other data', async () => {
    const client = new ScriptedClient().join();
    client.heard();
    const metadata: unknown = JSON.parse('{"__proto__":{"x":1}}');
    client.input({ type: 'endpointAdded', endpoint: { ...peerEndpoint('a', videoTrack('__proto__')), metadata } });
    const [added, tracks] = client.takeEvents();
    expect(JSON.stringify(added)).toContain('"metadata":{"__proto__":{"x":1}}');
    expect(JSON.stringify(tracks)).toContain('"tracks":{"__proto__":{');
    await client.cycle();
    expect(client.directions()).toEqual(['sendonly']);
  });
});

describe('events about media', () => {
  test('holds events of a track until an answer has named it, and sends only the latest', async () => {
    const simulcast = videoTrack('a:v', { encodings: ['l', 'm', 'h'], disabledEncodings: ['l'] });
    const client = new ScriptedClient().join(peerEndpoint('a', simulcast, audioTrack('a:a')));
    client.heard();
    client.input({ type: 'trackUpdated', endpointId: 'a', trackId: 'a:v', metadata: 1 });
    client.input({ type: 'trackUpdated', endpointId: 'a', trackId: 'a:v', metadata: 2 });
    client.input({ type: 'encodingChanged', endpointId: 'a', trackId: 'a:v', encoding: 'l', enabled: true });
    client.input({ type: 'encodingChanged', endpointId: 'a', trackId: 'a:v', encoding: 'm', enabled: false });
    client.input({ type: 'encodingSwitched', peerId: 'me', trackId: 'a:v', variant: 'm', reason: 'other' });
    client.input({ type: 'voiceActivity', trackId: 'a:a', status: 'silence' });
    client.input({ type: 'voiceActivity', trackId: 'a:a', status: 'speech' });
    await client.sendOffer();
    expect(client.heard()).toEqual([]);
    await client.negotiated();
    expect(client.heard().slice(2)).toEqual([
      'vadNotification a:a speech',
      'trackUpdated a:v 2',
      'trackEncodingEnabled a:v l',
      'trackEncodingDisabled a:v m',
    ]);
  });

  test('sends events of an answered track at once', async () => {
    const client = new ScriptedClient().join(peerEndpoint('a', videoTrack('a:v', { encodings: ['l', 'm', 'h'] })));
    await client.cycle();
    client.heard();
    client.input({ type: 'encodingSwitched', peerId: 'me', trackId: 'a:v', variant: 'm', reason: 'encoding_inactive' });
    client.input({ type: 'trackUpdated', endpointId: 'a', trackId: 'a:v', metadata: { x: 1 } });
    client.input({ type: 'bandwidthEstimation', peerId: 'me', estimationBps: 1_000_000 });
    expect(client.takeEvents()).toEqual([
      {
        type: 'encodingSwitched',
        data: { endpointId: 'a', trackId: 'a:v', encoding: 'm', reason: 'encoding_inactive' },
      },
      { type: 'trackUpdated', data: { endpointId: 'a', trackId: 'a:v', metadata: { x: 1 } } },
      { type: 'bandwidthEstimation', data: { estimation: 1_000_000 } },
    ]);
  });

  test('drops events of a removed or unknown track', async () => {
    const client = new ScriptedClient().join(someone);
    await client.cycle();
    client.input({ type: 'tracksRemoved', endpointId: 'a', trackIds: ['a:v'] });
    client.heard();
    client.input({ type: 'encodingSwitched', peerId: 'me', trackId: 'a:v', variant: 'h', reason: 'other' });
    client.input({ type: 'trackUpdated', endpointId: 'a', trackId: 'a:v', metadata: 1 });
    client.input({ type: 'voiceActivity', trackId: 'nothing', status: 'speech' });
    await client.cycle();
    expect(client.heard()).toEqual(['sdpAnswer {"0":"a:v"}', 'candidate']);
  });

  test('hands a target variant requested early to the media plane with the track', async () => {
    const client = new ScriptedClient().join(peerEndpoint('a', videoTrack('a:v', { encodings: ['l', 'm', 'h'] })));
    client.asked();
    client.custom('setTargetTrackVariant', { trackId: 'a:v', variant: 'l' });
    expect(client.asked()).toEqual([]);
    await client.cycle();
    expect(client.asked().slice(1)).toEqual([
      media({ type: 'setTargetVariant', peerId: 'me', trackId: 'a:v', variant: 'l' }),
    ]);
    client.custom('setTargetTrackVariant', { trackId: 'a:v', variant: 'h' });
    expect(client.asked()).toEqual([media({ type: 'setTargetVariant', peerId: 'me', trackId: 'a:v', variant: 'h' })]);
  });

  test('ignores a target for a track that was not announced to the client', () => {
    const client = new ScriptedClient().join(someone);
    client.input({ type: 'tracksAdded', endpointId: 'a', tracks: [videoTrack('a:w')] });
    client.asked();
    client.custom('setTargetTrackVariant', { trackId: 'a:w', variant: 'h' });
    expect(client.asked().map((action) => action.type)).toEqual(['warn']);
  });

  test.each([
    ['an unknown track', { trackId: 'x', variant: 'l' }],
    ['a variant that the track does not have', { trackId: 'a:v', variant: 'l' }],
    ['a variant that does not exist', { trackId: 'a:v', variant: 'xl' }],
  ])('ignores a target for %s', async (_what, data) => {
    const client = new ScriptedClient().join(someone);
    await client.cycle();
    client.asked();
    client.custom('setTargetTrackVariant', data);
    expect(client.asked().map((action) => action.type)).toEqual(['warn']);
  });
});

describe('protocol additions', () => {
  const inRoom = (data: unknown): ScriptedClient => {
    const client = new ScriptedClient();
    client.event('connect', data);
    client.input({ type: 'joined', endpoints: [someone] });
    return client;
  };

  test.each([
    ['those that both sides know', ['new', 'pause', 7], ['pause']],
    ['none to a client that names none', undefined, undefined],
    ['none to a client that names others', ['new'], undefined],
    ['none to a client that names no list', 'pause', undefined],
  ])('names %s in connected', (_what, named, agreed) => {
    const sent: string[] = [];
    const client = new ScriptedClient();
    client.event('connect', { metadata: null, features: named });
    for (const action of client.session.handle({ type: 'joined', endpoints: [] })) {
      if (action.type === 'send') sent.push(action.text);
    }
    expect(JSON.parse(sent[0] ?? '')).toEqual({
      type: 'connected',
      data: { id: 'me', otherEndpoints: [], ...(agreed === undefined ? {} : { features: agreed }) },
    });
  });

  test('pauses a track that was paused before its answer with the answer, once', async () => {
    const client = inRoom({ features: ['pause'] });
    client.asked();
    for (let n = 0; n < 2; n++) client.custom('setTrackPaused', { trackId: 'a:v', paused: true });
    expect(client.asked()).toEqual([]);
    await client.cycle();
    expect(client.asked().slice(1)).toEqual([
      media({ type: 'setTrackPaused', peerId: 'me', trackId: 'a:v', paused: true }),
    ]);
    for (let n = 0; n < 2; n++) client.custom('setTrackPaused', { trackId: 'a:v', paused: false });
    expect(client.asked()).toEqual([media({ type: 'setTrackPaused', peerId: 'me', trackId: 'a:v', paused: false })]);
  });

  test.each([
    ['an unknown track', { trackId: 'x', paused: true }],
    ['a track without its state', { trackId: 'a:v' }],
    ['a track with another state', { trackId: 'a:v', paused: 1 }],
    ['no track', { paused: true }],
  ])('ignores a pause of %s', async (_what, data) => {
    const client = inRoom({ features: ['pause'] });
    await client.cycle();
    client.asked();
    client.custom('setTrackPaused', data);
    expect(client.asked().map((action) => action.type)).toEqual(['warn']);
  });
});

describe('client input', () => {
  test.each([
    '',
    'null',
    '[]',
    '{"type":7}',
    '{"type":"nonsense"}',
    '{"type":"custom"}',
    '{"type":"custom","data":{"type":"sdpOffer"}}',
    '{"type":"updateTrackMetadata","data":{}}',
    `{"type":"connect","data":{"metadata":${'['.repeat(600)}${']'.repeat(600)}}}`,
  ])('ignores non-events with a warning: %s', (text) => {
    const client = new ScriptedClient();
    client.text(text);
    expect(client.asked().map((action) => action.type)).toEqual(['warn']);
  });

  test('warns less and less often about repeated garbage', () => {
    const client = new ScriptedClient();
    for (let n = 0; n < 1000; n++) client.text('rubbish');
    expect(client.asked()).toHaveLength(10);
  });

  test.each(['candidate', 'prioritizeTrack', 'unprioritizeTrack', 'preferedVideoSizes'])(
    'accepts %s without effect, wrapped or not',
    (type) => {
      const client = new ScriptedClient().join();
      client.asked();
      client.custom(type, { candidate: '', sdpMLineIndex: 0 });
      client.event(type, {});
      expect(client.asked()).toEqual([]);
    },
  );

  test('keeps deeply nested metadata unchanged', () => {
    const metadata: unknown = JSON.parse(`${'[{"a":'.repeat(200)}null${'}]'.repeat(200)}`);
    const client = new ScriptedClient();
    client.event('connect', { metadata });
    expect(client.asked()).toEqual([{ type: 'join', metadata, client: 'jellyfish' }]);
  });
});
