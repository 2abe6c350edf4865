import { describe, expect, test } from '@jest/globals';
import {
  DisconnectReason,
  LeaveRequest_Action,
  RequestResponse_Reason,
  TrackSource,
  TrackType,
  VideoQuality,
} from '@livekit/protocol';
import { sidOf } from '../names.js';
import { directions, native, ScriptedClient, track, type Line } from '../testing/scripted-client.js';

const AUDIO = { kind: 'audio', direction: 'recvonly' } as const;
const VIDEO = { kind: 'video', direction: 'recvonly' } as const;
/** What browsers offer first. */
const FREE: readonly Line[] = [AUDIO, AUDIO, AUDIO, VIDEO, VIDEO, VIDEO];

function camera(cid: string, more = {}): never {
  return { cid, type: TrackType.VIDEO, source: TrackSource.CAMERA, width: 1280, height: 720, ...more } as never;
}

/** Returns a client that publishes a camera on the m-line after the free ones. */
function publisher(line: Partial<Line> = {}): ScriptedClient {
  const client = new ScriptedClient().join();
  client.request({ case: 'addTrack', value: camera('cam') });

  return client.offer([...FREE, { kind: 'video', direction: 'sendonly', cid: 'cam', ...line }]);
}

describe('a join', () => {
  test('answers a join with the room, oneself and the others with their tracks', () => {
    const client = new ScriptedClient().join([native('bob', [track('v')])]);
    const [join] = client.heard('join');
    expect(join?.room).toMatchObject({ sid: 'RM_1', name: 'r', numParticipants: 2 });
    expect(join?.participant).toMatchObject({ sid: sidOf('PA', 'me'), identity: 'ann', version: 1 });
    expect(join?.otherParticipants).toMatchObject([
      { identity: 'bob', tracks: [{ sid: sidOf('TR', 'v'), source: TrackSource.CAMERA, mimeType: 'video/VP8' }] },
    ]);
  });

  test('names a server that clients consider neither too old nor too new', () => {
    const [join] = new ScriptedClient().join().heard('join');
    expect(join?.serverInfo).toMatchObject({ version: '1.13.5', protocol: 17, debugInfo: 'Bloom 1' });
    expect(join?.serverVersion).toBe('1.13.5');
  });

  test('offers the relay of the room, and the codecs that the room accepts', () => {
    const [join] = new ScriptedClient().join().heard('join');
    expect(join?.iceServers).toMatchObject([
      { urls: ['turn:192.0.2.1:1?transport=udp'], username: 'u', credential: 'p' },
    ]);
    expect(join?.enabledPublishCodecs.map(({ mime }) => mime)).toEqual(['video/VP8', 'video/H264', 'audio/opus']);
  });

  test('tells the client the largest number that LiveKit knows for limits of the room beyond it', () => {
    const room = {
      sid: 'RM_1',
      name: 'r',
      createdAt: 1,
      metadata: '',
      maxParticipants: 2 ** 40,
      departureTimeout: 5e9,
    };
    const [join] = new ScriptedClient().join([], { room }).heard('join');
    expect(join?.room).toMatchObject({ maxParticipants: 2 ** 32 - 1, departureTimeout: 2 ** 32 - 1 });
  });

  test('ends an earlier join of the same identity', () => {
    const client = new ScriptedClient().join();
    client.input({ type: 'endpointAdded', endpoint: native('ann', [], 'later') });
    expect(client.heard('leave')).toMatchObject([
      { reason: DisconnectReason.DUPLICATE_IDENTITY, action: LeaveRequest_Action.DISCONNECT },
    ]);
    expect(client.told).toMatchObject([{ type: 'leave' }]);
  });

  test('takes nobody for a participant who only claims to be one', () => {
    const client = new ScriptedClient().join([{ ...native('bob', [], 'first'), claimsServer: true }]);
    client.input({ type: 'endpointAdded', endpoint: { ...native('ann', [], 'second'), claimsServer: true } });
    const { metadata } = native('ann');
    client.input({ type: 'endpointUpdated', endpointId: 'first', metadata, claimsServer: true });
    const [join] = client.frames.map((frame) => (frame.case === 'join' ? frame.value.otherParticipants : []));
    const changes = client.frames.flatMap((frame) => (frame.case === 'update' ? frame.value.participants : []));
    expect(join?.map(({ identity }) => identity)).toEqual(['first']);
    expect(changes.map(({ identity }) => identity)).toEqual(['second', 'first']);
    expect(client.told).toEqual([]);
  });

  test('ends a join that brings no media within a minute', () => {
    const client = new ScriptedClient().join().input({ type: 'timer', name: 'retry' });
    expect(client.heard('leave')).toMatchObject([{ reason: DisconnectReason.JOIN_FAILURE }]);
  });
});

describe('publishing', () => {
  test('confirms a requested track with the sid under which it is published', () => {
    const client = new ScriptedClient().join();
    client.request({ case: 'addTrack', value: camera('cam') });
    const [published] = client.heard('trackPublished');
    client.offer([...FREE, { kind: 'video', direction: 'sendonly', cid: 'cam' }]);
    const [{ tracks } = { tracks: [] }] = client.took('publish');
    expect(published).toMatchObject({ cid: 'cam', track: { sid: sidOf('TR', tracks[0]?.trackId ?? '') } });
    expect(tracks[0]?.metadata).toEqual({ source: 'camera', name: '', muted: false, width: 1280, height: 720 });
  });

  test('keeps of a request only what describes the track', () => {
    const client = new ScriptedClient().join();
    const layer = { quality: VideoQuality.HIGH, width: 1280, height: 720, bitrate: 5 };
    const codec = { codec: 'vp8', cid: 'other', layers: [layer] };
    const more = { stream: 's', layers: [{ ...layer, rid: 'f' }], simulcastCodecs: [codec, codec] };
    client.request({ case: 'addTrack', value: camera('cam', more) });
    client.offer([...FREE, { kind: 'video', direction: 'sendonly', cid: 'cam', codecs: ['AV1/90000'] }]);
    const [refusal] = client.heard('requestResponse');
    expect(refusal?.request.value?.toJson()).toEqual({
      cid: 'cam',
      type: 'VIDEO',
      source: 'CAMERA',
      width: 1280,
      height: 720,
      layers: [{ quality: 'HIGH', width: 1280, height: 720, bitrate: 5 }],
      simulcastCodecs: [{ codec: 'vp8' }],
    });
  });

  test('refuses a track with more features than there are', () => {
    const client = new ScriptedClient().join();
    client.request({ case: 'addTrack', value: camera('cam', { audioFeatures: Array.from({ length: 9 }, () => 1) }) });
    expect(client.heard('requestResponse')).toMatchObject([{ reason: RequestResponse_Reason.LIMIT_EXCEEDED }]);
  });

  test('matches a track whose m-line names another id, as in Firefox, to the oldest requested one of its kind', () => {
    const client = publisher({ cid: '{another}' });
    expect(client.took('publish')[0]?.tracks).toHaveLength(1);
  });

  test('asks again for a track that is offered before it is requested', () => {
    const client = new ScriptedClient().join();
    client.offer([...FREE, { kind: 'video', direction: 'sendonly', cid: 'cam' }]);
    client.heard('answer');
    client.request({ case: 'addTrack', value: camera('cam') });
    expect(client.heard('mediaSectionsRequirement')).toMatchObject([{ numAudios: 0, numVideos: 0 }]);
  });

  test('maps the rids q, h and f to the variants l, m and h, which keep their names on the wire', () => {
    const client = publisher({ rids: ['q', 'h', 'f'] });
    const [{ negotiation } = { negotiation: undefined }] = client.took('negotiate');
    expect(negotiation?.inbound).toMatchObject([{ rids: ['l', 'm', 'h'], wireRids: ['q', 'h', 'f'] }]);
    expect(client.heard('answer')[0]?.sdp).toContain('a=simulcast:recv q;h;f');
  });

  test('unpublishes the track of an m-line that is offered inactive', () => {
    const client = publisher();
    const [trackId] = client.took('publish').flatMap(({ tracks }) => tracks.map((each) => each.trackId));
    client.offer([...FREE, { kind: 'video', direction: 'inactive' }]);
    expect(client.took('unpublish')).toMatchObject([{ trackIds: [trackId] }]);
  });

  test('keeps a muted track published, and tells everybody', () => {
    const client = publisher();
    const [published] = client.took('publish');
    const sid = sidOf('TR', published?.tracks[0]?.trackId ?? '');
    client.request({ case: 'mute', value: { sid, muted: true } as never });
    const asked = client.asked;
    expect(asked).toContainEqual(expect.objectContaining({ type: 'setTrackMuted', muted: true }));
    expect(asked).toContainEqual(
      expect.objectContaining({ type: 'setTrackMetadata', metadata: expect.objectContaining({ muted: true }) }),
    );
    expect(client.heard('update').at(-1)?.participants).toMatchObject([
      { identity: 'ann', tracks: [{ sid, muted: true }] },
    ]);
  });

  test('refuses a track in no codec of the room, and takes it back', () => {
    const client = publisher({ codecs: ['VP9/90000'] });
    const frames = [...client.frames];
    expect(client.heard('trackUnpublished')).toHaveLength(1);
    expect(frames).toContainEqual(
      expect.objectContaining({
        case: 'requestResponse',
        value: expect.objectContaining({ reason: RequestResponse_Reason.UNSUPPORTED_TYPE }),
      }),
    );
  });

  test.each([
    [
      'of a source that the token does not name',
      { source: TrackSource.SCREEN_SHARE },
      RequestResponse_Reason.NOT_ALLOWED,
    ],
    ['without a cid', { cid: '' }, RequestResponse_Reason.INVALID_REQUEST],
    ['with a name of more than 256 bytes', { name: 'x'.repeat(257) }, RequestResponse_Reason.LIMIT_EXCEEDED],
    ['with more than three layers', { layers: [{}, {}, {}, {}] }, RequestResponse_Reason.LIMIT_EXCEEDED],
  ])('refuses a track %s with its request', (_what, change, reason) => {
    const client = new ScriptedClient().join([], {
      grants: {
        canPublish: true,
        canSubscribe: true,
        canPublishData: true,
        canPublishSources: ['camera'],
        canUpdateOwnMetadata: true,
        hidden: false,
      },
    });
    client.request({ case: 'addTrack', value: camera('cam', change) });
    expect(client.heard('requestResponse')).toMatchObject([{ reason, request: { case: 'addTrack' } }]);
  });

  test('lets at most 20 tracks wait for an offer', () => {
    const client = new ScriptedClient().join();
    for (let i = 0; i < 1_000; i++) client.request({ case: 'addTrack', value: camera(`cam-${i}`) });
    const frames = [...client.frames];
    expect(client.heard('trackPublished')).toHaveLength(20);
    expect(frames.filter(({ case: which }) => which === 'requestResponse')).toHaveLength(980);
  });

  test('treats the same cid twice as the same track', () => {
    const client = new ScriptedClient().join();
    for (let i = 0; i < 2; i++) client.request({ case: 'addTrack', value: camera('cam') });
    const sids = client.heard('trackPublished').map((each) => each?.track?.sid);
    expect(sids[0]).toBe(sids[1]);
  });

  test('takes back a track that the backend removes, and refuses it under the same id', () => {
    const client = publisher();
    const [trackId = ''] = client.took('publish').flatMap(({ tracks }) => tracks.map((each) => each.trackId));
    client.heard('answer');
    client.input({ type: 'trackRemovedByServer', trackId });
    expect(client.heard('trackUnpublished')).toMatchObject([{ trackSid: sidOf('TR', trackId) }]);
  });

  test('takes the tracks back when permissions are lost', () => {
    const client = publisher();
    client.heard('answer');
    const permissions = { publish: ['audio' as const], subscribe: true, metadata: true };
    client.input({ type: 'setPublishes', kinds: ['audio'], permissions });
    expect(client.heard('trackUnpublished')).toHaveLength(1);
    expect(client.told.at(-1)).toMatchObject({ type: 'grants', grants: { canPublish: true, canPublishData: false } });
  });
});

test('takes back the tracks of a source that may no longer be published, offered or not', () => {
  const client = publisher();
  client.request({ case: 'addTrack', value: camera('second') });
  const ids = client.heard('trackPublished').map((each) => each?.track?.sid);
  const [trackId = ''] = client.took('publish').flatMap(({ tracks }) => tracks.map((each) => each.trackId));
  const { server } = native('ann').metadata as { server: object };
  client.input({ type: 'recordSet', metadata: { ...server, sources: ['screen_share'] } });
  const asked = [...client.asked];
  expect(client.heard('trackUnpublished').map((each) => each?.trackSid)).toEqual([sidOf('TR', trackId), ids.at(-1)]);
  expect(asked).toContainEqual({ type: 'unpublish', trackIds: expect.arrayContaining([trackId]) });
  expect(asked).toContainEqual({ type: 'media', command: { type: 'removeTrack', peerId: 'me', trackId } });
  expect(client.told.at(-1)).toMatchObject({ type: 'grants', grants: { canPublishSources: ['screen_share'] } });
  client.offer([...FREE, { kind: 'video', direction: 'sendonly', cid: 'cam' }]);
  expect(client.took('publish')).toEqual([]);
});

describe('subscribing', () => {
  test('binds tracks to free sections in the answer, with the names by which clients find them', () => {
    const client = new ScriptedClient().join([native('bob', [track('v')])]).offer(FREE);
    const [answer] = client.heard('answer');
    const [owner, sid] = [sidOf('PA', 'peer-bob'), sidOf('TR', 'v')];
    expect(answer).toMatchObject({ id: 1, midToTrackId: { 3: sid } });
    expect(answer?.sdp).toContain(`a=msid:${owner}|camera ${sid}\r\n`);
    expect(directions(answer?.sdp ?? '')).toEqual([...Array(3).fill('inactive'), 'sendonly', 'inactive', 'inactive']);
  });

  test('announces somebody before the answer that carries their track', () => {
    const client = new ScriptedClient().join();
    client.offerOnly(FREE);
    client.frames = [];
    client.input({ type: 'endpointAdded', endpoint: native('bob', [track('v')]) });
    client.input({ type: 'negotiated', generation: 1 });
    expect(client.frames.map(({ case: which }) => which)).toEqual(['update', 'answer', 'mediaSectionsRequirement']);
  });

  test('asks for the missing sections, and for an offer if none is missing', () => {
    const client = new ScriptedClient().join().offer(FREE);
    client.heard('answer');
    const four = ['a', 'b', 'c', 'd'].map((id) => track(id));
    client.input({ type: 'endpointAdded', endpoint: native('bob', four) });
    expect(client.heard('mediaSectionsRequirement')).toMatchObject([{ numAudios: 0, numVideos: 1 }]);
    client.input({ type: 'endpointAdded', endpoint: native('eve', [track('e', 'audio')]) });
    expect(client.heard('mediaSectionsRequirement')).toEqual([]);
    client.offer([...FREE, VIDEO]);
    const frames = [...client.frames];
    expect(Object.keys(client.heard('answer')[0]?.midToTrackId ?? {})).toHaveLength(5);
    expect(frames.some(({ case: which }) => which === 'mediaSectionsRequirement')).toBe(false);
  });

  test('repeats a request for an offer after five seconds', () => {
    const client = new ScriptedClient().join().offer(FREE);
    client.heard('answer');
    client.input({ type: 'endpointAdded', endpoint: native('bob', [track('v')]) });
    client.heard('mediaSectionsRequirement');
    client.input({ type: 'timer', name: 'offer' });
    expect(client.heard('mediaSectionsRequirement')).toHaveLength(1);
  });

  test('requests no offer of a client that is away until it returns', () => {
    const client = new ScriptedClient().join().offer(FREE);
    client.heard('answer');
    client.input({ type: 'clientEvent', text: 'a' });
    client.input({ type: 'endpointAdded', endpoint: native('bob', [track('v')]) });
    expect(client.heard('mediaSectionsRequirement')).toEqual([]);
    client.input({ type: 'clientEvent', text: 'r' });
    expect(client.heard('mediaSectionsRequirement')).toHaveLength(1);
  });

  test('makes a section inactive once before it carries another track', () => {
    const client = new ScriptedClient().join([native('bob', [track('v')])]).offer([VIDEO]);
    client.input({ type: 'tracksRemoved', endpointId: 'peer-bob', trackIds: ['v'] });
    client.input({ type: 'tracksAdded', endpointId: 'peer-bob', tracks: [track('w')] });
    client.heard('answer');
    client.offer([VIDEO]);
    const frames = [...client.frames];
    expect(directions(client.heard('answer')[0]?.sdp ?? '')).toEqual(['inactive']);
    expect(frames.at(-1)).toMatchObject({ case: 'mediaSectionsRequirement', value: { numVideos: 0 } });
    client.offer([VIDEO]);
    expect(client.heard('answer')).toMatchObject([{ midToTrackId: { 0: sidOf('TR', 'w') } }]);
  });

  test('keeps no section for a track that nobody wants', () => {
    const client = new ScriptedClient().join([native('bob', [track('v')])]).offer(FREE);
    client.heard('answer');
    client.request({ case: 'subscription', value: { trackSids: [sidOf('TR', 'v')], subscribe: false } as never });
    client.offer(FREE);
    expect(client.heard('answer')[0]?.midToTrackId).toEqual({});
  });

  test('sends nothing without automatic subscriptions until it is requested', () => {
    const client = new ScriptedClient().join([native('bob', [track('v')])], { autoSubscribe: false }).offer(FREE);
    expect(client.heard('answer')[0]?.midToTrackId).toEqual({});
    client.request({ case: 'subscription', value: { trackSids: [sidOf('TR', 'v')], subscribe: true } as never });
    expect(client.heard('mediaSectionsRequirement')).toHaveLength(1);
  });

  test('answers only the newest offer', () => {
    const client = new ScriptedClient().join();
    client.offerOnly(FREE).offerOnly(FREE).input({ type: 'negotiated', generation: 1 });
    expect(client.heard('answer')).toEqual([]);
    client.input({ type: 'negotiated', generation: 2 });
    expect(client.heard('answer')).toMatchObject([{ id: 2 }]);
  });

  test('sends the best layer to a client that expresses no preference', () => {
    const client = new ScriptedClient().join([native('bob', [track('v', 'video', { encodings: ['l', 'm', 'h'] })])]);
    client.offer(FREE);
    expect(client.took('media')).toMatchObject([{ command: { type: 'setTargetVariant', trackId: 'v', variant: 'h' } }]);
  });

  test('sends the best layer again of a track that the client has dropped and wants back', () => {
    const client = new ScriptedClient().join([native('bob', [track('v', 'video', { encodings: ['l', 'm', 'h'] })])]);
    client.offer([VIDEO]).took('media');
    for (const subscribe of [false, true]) {
      client.request({ case: 'subscription', value: { trackSids: [sidOf('TR', 'v')], subscribe } as never });
      client.offer([VIDEO]);
    }
    expect(client.took('media')).toMatchObject([{ command: { type: 'setTargetVariant', trackId: 'v', variant: 'h' } }]);
  });

  test('sends the smallest layer of the wanted size, and none of a track off the screen', () => {
    const metadata = { source: 'camera', width: 1280, height: 720 };
    const camera720 = track('v', 'video', { encodings: ['l', 'm', 'h'], metadata });
    const client = new ScriptedClient().join([native('bob', [camera720])]).offer(FREE);
    const set = (value: object) =>
      client.request({ case: 'trackSetting', value: { trackSids: [sidOf('TR', 'v')], ...value } as never });
    client.took('media');
    set({ width: 640, height: 350 });
    set({ width: 640, height: 360 });
    set({ quality: VideoQuality.LOW });
    set({ disabled: true });
    set({ quality: VideoQuality.HIGH });
    expect(client.took('media').map(({ command }) => command)).toMatchObject([
      { type: 'setTargetVariant', variant: 'm' },
      { type: 'setTargetVariant', variant: 'l' },
      { type: 'setTrackPaused', paused: true },
      { type: 'setTargetVariant', variant: 'h' },
      { type: 'setTrackPaused', paused: false },
    ]);
  });
});

describe('the others', () => {
  test('reports somebody who returns under the same identity once, with the new sid', () => {
    const client = new ScriptedClient().join([native('bob', [], 'old')]);
    client.heard('join');
    client.input({ type: 'endpointAdded', endpoint: native('bob', [], 'new') });
    client.input({ type: 'endpointRemoved', endpointId: 'old' });
    const told = client.heard('update').flatMap((each) => each?.participants ?? []);
    expect(told).toMatchObject([{ identity: 'bob', sid: sidOf('PA', 'new') }]);
  });

  test('raises versions with each change, since clients drop older ones', () => {
    const client = new ScriptedClient().join([native('bob')]);
    for (let i = 0; i < 3; i++) {
      client.input({ type: 'endpointUpdated', endpointId: 'peer-bob', metadata: native('bob').metadata });
    }
    const versions = client.heard('update').flatMap((each) => each?.participants.map(({ version }) => version) ?? []);
    expect(versions).toEqual([2, 3, 4]);
  });

  test('shows peers of other faces with their ids, names and metadata', () => {
    const client = new ScriptedClient().join([
      { id: 'p1', type: 'webrtc', metadata: { displayName: 'Eve' }, tracks: [] },
    ]);
    expect(client.heard('join')[0]?.otherParticipants).toMatchObject([
      { identity: 'p1', name: 'Eve', metadata: '{"displayName":"Eve"}', clientProtocol: 0 },
    ]);
  });

  test('shows a camera by its type and never by its address', () => {
    const component = { id: 'c1', type: 'rtsp', metadata: { sourceUri: 'rtsp://user:pw@host' }, tracks: [] } as const;
    const [join] = new ScriptedClient().join([component]).heard('join');
    expect(join?.otherParticipants).toMatchObject([{ identity: 'c1', name: 'rtsp', metadata: '' }]);
  });

  test('does not show streams and recordings', () => {
    const components = (['hls', 'recording'] as const).map((type) => ({ id: type, type, metadata: null, tracks: [] }));
    expect(new ScriptedClient().join(components).heard('join')[0]?.otherParticipants).toEqual([]);
  });
});

describe('bad input', () => {
  test('ends the session with the order to start over on an offer that cannot be parsed', () => {
    const client = new ScriptedClient().join();
    client.request({ case: 'offer', value: { type: 'offer', sdp: 'v=0\r\nm=\0', id: 1 } as never });
    expect(client.heard('leave')).toMatchObject([
      { reason: DisconnectReason.STATE_MISMATCH, action: LeaveRequest_Action.RECONNECT },
    ]);
    expect(client.request({ case: 'addTrack', value: camera('cam') }).heard('trackPublished')).toEqual([]);
  });

  test('refuses more than 200 sections', () => {
    const client = new ScriptedClient().join().offer(Array.from({ length: 201 }, () => VIDEO));
    expect(client.heard('leave')).toHaveLength(1);
  });

  test('ignores frames that cannot be decoded, and logs them at powers of two', () => {
    const client = new ScriptedClient().join();
    client.took('warn');
    for (let i = 0; i < 8; i++) client.input({ type: 'clientEvent', text: 'fAAAA' });
    expect(client.took('warn')).toHaveLength(4);
  });

  test('keeps a name that SDP cannot carry out of SDP', () => {
    const named = track('v', 'video', { metadata: { source: 'unknown', name: 'a\r\na=evil:1' } });
    const [answer] = new ScriptedClient()
      .join([native('bob', [named])])
      .offer(FREE)
      .heard('answer');
    expect(answer?.sdp).toContain('|unknown TR_');
    expect(answer?.sdp).not.toContain('evil');
  });

  test('limits the bytes of changes that all others are sent', () => {
    const client = new ScriptedClient().join();
    const change = (metadata: string) =>
      client.request({ case: 'updateMetadata', value: { metadata, requestId: 1 } as never });
    const reasons = (): unknown[] => client.heard('requestResponse').map((answer) => answer?.reason);
    const { OK, LIMIT_EXCEEDED } = RequestResponse_Reason;
    reasons();
    for (let i = 0; i < 6; i++) change('x'.repeat(60_000));
    expect(reasons()).toEqual([OK, OK, OK, OK, OK, LIMIT_EXCEEDED]);
    expect(client.told).toHaveLength(5);
    expect(client.took('setTimer').filter(({ name }) => name === 'hold')).toHaveLength(1);
    for (let second = 0; second < 2; second++) client.input({ type: 'timer', name: 'hold' });
    for (let i = 0; i < 2; i++) change('y');
    expect(reasons()).toEqual([OK, OK]);
    for (let second = 0; second < 9; second++) client.input({ type: 'timer', name: 'hold' });
    expect(client.took('setTimer').filter(({ name }) => name === 'hold').length).toBeLessThan(10);
  });

  test('passes on only the fields of itself that the client changes', () => {
    const client = new ScriptedClient().join();
    client.request({ case: 'updateMetadata', value: { name: 'Anna', requestId: 1 } as never });
    client.request({ case: 'updateMetadata', value: { attributes: { mood: 'good' }, requestId: 2 } as never });
    expect(client.told).toEqual([
      { type: 'record', fields: { name: 'Anna' } },
      { type: 'record', fields: { attributes: { mood: 'good' } } },
    ]);
  });

  test('refuses metadata over the limit, and changes nothing', () => {
    const client = new ScriptedClient().join();
    client.request({ case: 'updateMetadata', value: { metadata: 'x'.repeat(70_000), requestId: 7 } as never });
    expect(client.heard('requestResponse')).toMatchObject([
      { requestId: 7, reason: RequestResponse_Reason.LIMIT_EXCEEDED },
    ]);
    expect(client.told).toEqual([]);
  });

  test('refuses a data track with its request', () => {
    const client = new ScriptedClient().join();
    client.request({ case: 'publishDataTrackRequest', value: { pubHandle: 1, name: 'd' } as never });
    expect(client.heard('requestResponse')).toMatchObject([{ reason: RequestResponse_Reason.UNSUPPORTED_TYPE }]);
  });
});
