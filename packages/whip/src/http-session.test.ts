import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Endpoint, EndpointTrack, PeerSession, SessionAction, SessionInput } from '@bloom/rooms';
import type { TransportNegotiation } from '@bloom/sfu';
import { createHttpSession } from './http-session.js';
import { acceptOffer } from './offer.js';
import type { SessionAnswer, SessionRequest, SessionRole, WatchedSource } from './session-message.js';
import { offers } from './testing/offers.js';

let byte = 0;
let session: PeerSession;
let actions: SessionAction[];

beforeEach(() => start());

interface Rules {
  videoCodec?: 'h264' | 'vp8';
  enableSimulcast?: boolean;
  publishes?: readonly ('audio' | 'video')[];
}

function start(over: Rules = {}): void {
  actions = [];
  session = createHttpSession({
    peerId: 'ann',
    client: 'http',
    videoCodec: null,
    enableSimulcast: true,
    publishes: ['audio', 'video'],
    endpoint: { address: '192.0.2.1', port: 50_000, fingerprint: { algorithm: 'sha-256', value: 'AB:CD' } },
    relay: { username: '1:ann', password: 'secret' },
    randomBytes: (n) => Uint8Array.from({ length: n }, () => (byte = (byte * 5 + 77) & 0xff)),
    ...over,
  });
}

/** Feeds an input and completes each negotiation that it causes. */
function feed(input: SessionInput): void {
  const caused = session.handle(input);
  actions.push(...caused);
  for (const action of caused) {
    if (action.type === 'negotiate') feed({ type: 'negotiated', generation: action.negotiation.generation });
  }
}

const request = (text: SessionRequest) => feed({ type: 'clientEvent', text: JSON.stringify(text) });

function open(role: SessionRole, sdp: string, endpoints: readonly Endpoint[] = []): string {
  request({ type: 'offer', role, sdp });
  feed({ type: 'joined', endpoints });
  const answer = answers().at(-1);
  return answer?.type === 'answer' ? answer.sdp : JSON.stringify(answer);
}

const watch = (source: WatchedSource, endpoints: readonly Endpoint[], sdp: string = offers.viewer) =>
  open({ type: 'watch', source }, sdp, endpoints);

const answers = () =>
  actions.flatMap((action) => (action.type === 'send' ? [JSON.parse(action.text) as SessionAnswer] : []));
const negotiations = () =>
  actions.flatMap((action): TransportNegotiation[] => (action.type === 'negotiate' ? [action.negotiation] : []));
/** Returns the ids of the tracks on the m-lines, by mid. */
const shown = () =>
  Object.fromEntries(
    negotiations()
      .at(-1)!
      .outbound.map(({ mid, trackId }) => [mid, trackId]),
  );

function track(trackId: string, kind: 'audio' | 'video', over: Partial<EndpointTrack> = {}): EndpointTrack {
  const codec = kind === 'audio' ? 'opus' : 'vp8';
  return { trackId, kind, codec, metadata: null, encodings: [], disabledEncodings: [], ...over };
}

const participant = (id: string): Endpoint => ({
  id,
  type: 'webrtc',
  metadata: null,
  tracks: [track(`${id}:a`, 'audio'), track(`${id}:v`, 'video')],
});

describe('publishers', () => {
  test.each(['chromium', 'obs', 'simulcast', 'foreignRids'] as const)('publishes the offer of %s', (name) => {
    const answer = open({ type: 'publish' }, offers[name]);
    expect(answer.match(/^a=recvonly/gm)).toHaveLength(2);
    expect(answer).toContain('a=candidate:1 1 UDP 2130706431 192.0.2.1 50000 typ host');
    const published = actions.find(({ type }) => type === 'publish');
    expect(published).toMatchObject({ tracks: [{ kind: 'audio' }, { kind: 'video' }] });
    expect(negotiations()[0]?.inbound.map(({ rids }) => rids.join())).toEqual([
      '',
      { simulcast: 'l,m,h', foreignRids: 'h,m', chromium: '', obs: '' }[name],
    ]);
    // The media plane comes first: no track may be announced before it knows the track.
    expect(actions.map(({ type }) => type)).toEqual(['join', 'negotiate', 'publish', 'send']);
  });

  test("answers a publisher's extensions without attributes, which aiortc cannot parse", () => {
    expect(open({ type: 'publish' }, offers.chromium)).toMatch(
      /^a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level\r$/m,
    );
  });

  test('answers arbitrary rids in offer order', () => {
    expect(open({ type: 'publish' }, offers.foreignRids)).toContain('a=simulcast:recv 0;1\r\n');
    expect(negotiations()[0]?.inbound[1]).toMatchObject({ rids: ['h', 'm'], wireRids: ['0', '1'] });
  });

  test.each([
    ['simulcast', 'l'],
    ['foreignRids', '0'],
  ] as const)('takes only the first encoding of %s when its peer may not send simulcast', (name, first) => {
    start({ enableSimulcast: false });
    expect(open({ type: 'publish' }, offers[name])).not.toContain('a=simulcast');
    expect(negotiations()[0]?.inbound[1]).toMatchObject({ rids: [], wireRids: [first] });
  });

  test('refuses a publisher without a codec that the room allows', () => {
    start({ videoCodec: 'vp8' });
    request({ type: 'offer', role: { type: 'publish' }, sdp: offers.obs });
    expect(answers()).toEqual([
      { type: 'refused', code: 'NO_CODEC', reason: expect.stringMatching(/VP8 for video.*H264/) },
    ]);
  });

  test("removes a publisher's track when its permission is revoked and restores it when the permission is granted", () => {
    open({ type: 'publish' }, offers.chromium);
    actions = [];
    feed({ type: 'setPublishes', kinds: ['audio'] });
    expect(actions).toMatchObject([{ type: 'negotiate' }, { type: 'unpublish', trackIds: [expect.any(String)] }]);
    expect(negotiations()[0]?.inbound.map(({ kind }) => kind)).toEqual(['audio']);
    actions = [];
    feed({ type: 'setPublishes', kinds: ['audio', 'video'] });
    expect(actions).toMatchObject([{ type: 'negotiate' }, { type: 'publish', tracks: [{ kind: 'video' }] }]);
  });

  test('never publishes an m-line that the answer refused, even when it is permitted later', () => {
    start({ publishes: ['audio'] });
    expect(open({ type: 'publish' }, offers.chromium).match(/^a=(recvonly|inactive)/gm)).toEqual([
      'a=recvonly',
      'a=inactive',
    ]);
    actions = [];
    feed({ type: 'setPublishes', kinds: ['audio', 'video'] });
    expect(actions.filter(({ type }) => type === 'publish')).toEqual([]);
    expect(
      negotiations()
        .at(-1)
        ?.inbound.map(({ kind }) => kind),
    ).toEqual(['audio']);
    actions = [];
    feed({ type: 'setPublishes', kinds: [] });
    feed({ type: 'setPublishes', kinds: ['audio', 'video'] });
    expect(actions.at(-1)).toMatchObject({ type: 'publish', tracks: [{ kind: 'audio' }] });
  });

  test('allows a publisher to restart ICE once per second', () => {
    open({ type: 'publish' }, offers.chromium);
    const restart = (ufrag: string) => request({ type: 'update', etag: null, ice: { ufrag, pwd: 'x'.repeat(22) } });
    restart('new1');
    restart('new2');
    expect(answers().at(-1)).toEqual({ type: 'tooManyRestarts' });
    expect(negotiations()).toHaveLength(2);
    expect(actions).toContainEqual({ type: 'setTimer', name: 'restart', ms: 1_000 });
    feed({ type: 'timer', name: 'restart' });
    restart('new2');
    expect(answers().at(-1)).toMatchObject({ type: 'restarted', etag: '3' });
  });

  test('changes the credentials of both sides on an ICE restart and keeps the tracks', () => {
    open({ type: 'publish' }, offers.chromium);
    const [before] = negotiations();
    request({ type: 'update', etag: null, ice: { ufrag: 'new1', pwd: 'x'.repeat(22) } });
    const [, after] = negotiations();
    expect(after).toMatchObject({ generation: 2, ice: { remoteUfrag: 'new1' }, inbound: before!.inbound });
    expect(after!.ice.localUfrag).not.toBe(before!.ice.localUfrag);
    expect(answers().at(-1)).toEqual({
      type: 'restarted',
      etag: '2',
      fragment: expect.stringContaining(`a=ice-ufrag:${after!.ice.localUfrag}\r\n`),
    });
    request({ type: 'update', etag: '1', ice: null });
    request({ type: 'update', etag: '2', ice: { ufrag: 'new1', pwd: 'x'.repeat(22) } });
    expect(answers().slice(-2)).toEqual([{ type: 'stale', etag: '2' }, { type: 'unchanged' }]);
  });
});

describe('viewers', () => {
  test('lets a viewer join hidden, even before its source', () => {
    const answer = watch({ type: 'endpoint', endpointId: 'bob' }, []);
    expect(actions[0]).toEqual({ type: 'join', metadata: null, client: 'whep', hidden: true });
    expect(answer.match(/^a=sendonly/gm)).toHaveLength(2);
    expect(shown()).toEqual({});
    feed({ type: 'endpointAdded', endpoint: participant('bob') });
    expect(shown()).toEqual({ 0: 'bob:a', 1: 'bob:v' });
    feed({ type: 'endpointRemoved', endpointId: 'bob' });
    expect(shown()).toEqual({});
  });

  test('answers a viewer with every codec of the room, the codec of its source first', () => {
    const h264 = { ...participant('bob'), tracks: [track('v', 'video', { codec: 'h264' })] };
    const answer = watch({ type: 'endpoint', endpointId: 'bob' }, [h264]);
    expect(answer).toContain('m=video 9 UDP/TLS/RTP/SAVPF 102 103 96 97\r\n');
    expect(negotiations()[0]?.outbound[0]?.codec).toMatchObject({ name: 'h264', payloadType: 102 });
    start({ videoCodec: 'vp8' });
    expect(watch({ type: 'speaker' }, [])).toContain('m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\n');
  });

  test.each([
    ['a participant', { type: 'endpoint', endpointId: 'bob' }, ['a', 'v']],
    ['one track', { type: 'track', trackId: 'v' }, ['v']],
    ['whoever speaks', { type: 'speaker' }, ['a', 'v']],
  ] as const)('warns once of each encrypted track when a viewer watches %s, and shows none', (_what, source, ids) => {
    const warnings = () => actions.flatMap((action) => (action.type === 'warn' ? [action] : []));
    const [a, v] = [track('a', 'audio', { encrypted: true }), track('v', 'video', { encrypted: true })];
    watch(source, [{ ...participant('bob'), tracks: [] }]);
    for (const tracks of [[a], [v]]) feed({ type: 'tracksAdded', endpointId: 'bob', tracks });
    feed({ type: 'endpointAdded', endpoint: { ...participant('bob'), tracks: [a, v] } });
    expect(shown()).toEqual({});
    expect(warnings()).toEqual(
      ids.map((id) => ({
        type: 'warn',
        event: 'peer.no_key',
        detail: `track ${id} is encrypted; the client does not decrypt`,
      })),
    );
  });

  test('warns once of a track whose codec a viewer lacks, and shows the others', () => {
    const warnings = () => actions.flatMap((action) => (action.type === 'warn' ? [action] : []));
    const bob = { ...participant('bob'), tracks: [track('a', 'audio'), track('v', 'video', { codec: 'av1' })] };
    watch({ type: 'endpoint', endpointId: 'bob' }, [bob]);
    expect(shown()).toEqual({ 0: 'a' });
    const detail = 'track v is sent in av1, which the client does not offer';
    expect(warnings()).toEqual([{ type: 'warn', event: 'peer.no_codec', detail }]);

    feed({ type: 'endpointRemoved', endpointId: 'bob' });
    feed({ type: 'endpointAdded', endpoint: bob });
    expect(warnings()).toHaveLength(1);
  });

  test('shows the second encoding of a track whose first codec a viewer lacks', () => {
    const bob = { ...participant('bob'), tracks: [track('v', 'video', { codec: 'av1', fallback: 'h264' })] };
    const answer = watch({ type: 'endpoint', endpointId: 'bob' }, [bob]);
    expect(negotiations()[0]?.outbound).toMatchObject([{ trackId: 'v', codec: { name: 'h264', payloadType: 102 } }]);
    // Its codec comes first.
    expect(answer).toContain('m=video 9 UDP/TLS/RTP/SAVPF 102 103 96 97\r\n');
    expect(actions.filter(({ type }) => type === 'warn')).toEqual([]);
  });

  test('does not warn of a track of a kind that a viewer does not watch', () => {
    const bob = { ...participant('bob'), tracks: [track('a', 'audio'), track('v', 'video')] };
    watch({ type: 'endpoint', endpointId: 'bob' }, [bob], offers.pictureOnly);
    expect(actions.filter(({ type }) => type === 'warn')).toEqual([]);
  });

  test('lets a viewer watch a single track', () => {
    watch({ type: 'track', trackId: 'bob:v' }, [participant('ann'), participant('bob')]);
    expect(shown()).toEqual({ 1: 'bob:v' });
  });

  test('gives a viewer the best variant that fits', () => {
    const bob = { ...participant('bob'), tracks: [track('v', 'video', { encodings: ['l', 'm', 'h'] })] };
    watch({ type: 'endpoint', endpointId: 'bob' }, [bob], offers.pictureOnly);
    expect(actions).toContainEqual({
      type: 'media',
      command: { type: 'setTargetVariant', peerId: 'ann', trackId: 'v', variant: 'h' },
    });
  });

  test('lets a viewer follow the speaker on the same SSRCs, at most every 2 s', () => {
    watch({ type: 'speaker' }, [participant('ann'), participant('bob')]);
    expect(shown()).toEqual({ 0: 'ann:a', 1: 'ann:v' });
    expect(actions).toContainEqual({ type: 'setTimer', name: 'hold', ms: 2_000 });
    const ssrcs = () =>
      negotiations()
        .at(-1)!
        .outbound.map(({ ssrc }) => ssrc);
    const before = ssrcs();
    feed({ type: 'voiceActivity', trackId: 'bob:a', status: 'speech' });
    expect(negotiations()).toHaveLength(1);
    feed({ type: 'timer', name: 'hold' });
    expect(shown()).toEqual({ 0: 'bob:a', 1: 'bob:v' });
    expect(ssrcs()).toEqual(before);
    // The credentials stay the same: nothing is signalled to the client.
    expect(negotiations()[1]?.ice).toEqual(negotiations()[0]?.ice);
    expect(answers()).toHaveLength(1);
  });

  test('starts a viewer with the newest current speaker who has video', () => {
    const eve = { ...participant('eve'), tracks: [track('eve:a', 'audio')] };
    const endpoints = [participant('ann'), participant('bob'), participant('kim'), eve];
    request({ type: 'offer', role: { type: 'watch', source: { type: 'speaker' } }, sdp: offers.viewer });
    feed({ type: 'joined', endpoints, speaking: ['kim:a', 'bob:a', 'eve:a'] });
    expect(shown()).toEqual({ 0: 'bob:a', 1: 'bob:v' });
    feed({ type: 'voiceActivity', trackId: 'bob:a', status: 'silence' });
    feed({ type: 'timer', name: 'hold' });
    expect(shown()).toEqual({ 0: 'kim:a', 1: 'kim:v' });
  });

  test('does not return a viewer to a participant whose microphone track was removed', () => {
    watch({ type: 'speaker' }, [participant('ann'), participant('bob')]);
    feed({ type: 'voiceActivity', trackId: 'ann:a', status: 'speech' });
    feed({ type: 'tracksRemoved', endpointId: 'ann', trackIds: ['ann:a'] });
    feed({ type: 'voiceActivity', trackId: 'bob:a', status: 'speech' });
    feed({ type: 'timer', name: 'hold' });
    expect(shown()).toEqual({ 0: 'bob:a', 1: 'bob:v' });
    feed({ type: 'voiceActivity', trackId: 'bob:a', status: 'silence' });
    feed({ type: 'timer', name: 'hold' });
    expect(shown()).toEqual({ 0: 'bob:a', 1: 'bob:v' });
  });

  test('keeps a viewer on a speaker whose other audio track falls silent', () => {
    const bob = { ...participant('bob'), tracks: [...participant('bob').tracks, track('bob:film', 'audio')] };
    watch({ type: 'speaker' }, [participant('ann'), bob]);
    feed({ type: 'voiceActivity', trackId: 'ann:a', status: 'speech' });
    feed({ type: 'voiceActivity', trackId: 'bob:film', status: 'speech' });
    feed({ type: 'voiceActivity', trackId: 'bob:a', status: 'speech' });
    feed({ type: 'voiceActivity', trackId: 'bob:film', status: 'silence' });
    feed({ type: 'timer', name: 'hold' });
    expect(shown()).toEqual({ 0: 'bob:a', 1: 'bob:v' });
    feed({ type: 'voiceActivity', trackId: 'bob:a', status: 'silence' });
    feed({ type: 'timer', name: 'hold' });
    expect(shown()).toEqual({ 0: 'ann:a', 1: 'ann:v' });
  });
});

describe('unsuitable offers', () => {
  test.each([
    ['two cameras', offers.chromium.replace('m=audio 9', 'm=video 9'), /2 video m-lines/],
    ['nothing to send', offers.viewer, /no audio or video m-line that sends/],
    ['a secret in its error', offers.chromium.replace('a=ice-pwd:0', 'a=ice-pwd:'), /hidden/],
  ])('refuses an offer with %s', (_what, sdp, sentence) => {
    expect(() => acceptOffer(sdp, 'publish', { videoCodec: null })).toThrow(sentence);
  });
});

test('answers requests in order, even while an ICE restart waits for the media plane', () => {
  open({ type: 'publish' }, offers.chromium);
  actions = [];
  const ask = (message: SessionRequest): void => {
    actions.push(...session.handle({ type: 'clientEvent', text: JSON.stringify(message) }));
  };
  ask({ type: 'update', etag: null, ice: { ufrag: 'fresh', pwd: 'p'.repeat(22) } });
  ask({ type: 'update', etag: '1', ice: null });
  expect(answers()).toEqual([]);
  const generation = negotiations().at(-1)?.generation ?? 0;
  actions.push(...session.handle({ type: 'negotiated', generation }));
  expect(answers().map(({ type }) => type)).toEqual(['restarted', 'stale']);
});
