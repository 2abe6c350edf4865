import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { LocalTrack, type PublishOptions } from './local-track.js';

/** The parts of a connection that an offer needs. */
class FakeConnection extends EventTarget {
  static last: FakeConnection;
  signalingState = 'stable';
  localDescription: { sdp: string } | undefined;
  readonly transceivers: { extensions: unknown; asked: unknown[] }[] = [];
  readonly removed: unknown[] = [];
  #isClosed = false;
  constructor() {
    super();
    FakeConnection.last = this;
  }
  setConfiguration(): void {}
  addTransceiver(_media: unknown, { sendEncodings = [] }: RTCRtpTransceiverInit): unknown {
    if (this.#isClosed) throw new DOMException('', 'InvalidStateError');
    if (sendEncodings.some((one) => 'scalabilityMode' in one)) throw new DOMException('no such mode', 'OperationError');
    const transceiver = {
      mid: String(this.transceivers.length),
      direction: 'sendonly',
      currentDirection: null,
      sender: {
        getParameters: () => ({ encodings: [{ active: false }, { active: false }] }),
        setParameters: async ({ encodings }: RTCRtpSendParameters) =>
          void transceiver.asked.push(encodings.map(({ active }) => active)),
      },
      asked: [] as unknown[],
      receiver: { track: { kind: 'video' } },
      extensions: ['urn:mid', 'https://x/av1-rtp-spec/'].map((uri) => ({ uri, direction: 'stopped' })),
      getHeaderExtensionsToNegotiate: () => structuredClone(transceiver.extensions),
      setHeaderExtensionsToNegotiate(extensions: { uri: string; direction: string }[]) {
        transceiver.extensions = extensions;
      },
    };
    this.transceivers.push(transceiver);
    return transceiver;
  }
  getTransceivers(): unknown[] {
    return this.transceivers;
  }
  createOffer(): Promise<object> {
    return Promise.resolve({ type: 'offer', sdp: 'v=0' });
  }
  setLocalDescription(): Promise<void> {
    this.localDescription = { sdp: 'v=0' };
    return Promise.resolve();
  }
  removeTrack(sender: unknown): void {
    this.removed.push(sender);
  }
  close(): void {
    this.#isClosed = true;
  }
}

const world = globalThis as unknown as Record<string, unknown>;
beforeEach(() => void (world['RTCPeerConnection'] = FakeConnection));
afterEach(() => void delete world['RTCPeerConnection']);

interface Offer {
  trackIdToTrackMetadata: object;
  fallbacks: object;
}

/** Returns a connection, metadata and ids of the tracks in its offers, and the metadata of the tracks refused. */
async function connect(features: readonly string[] = []) {
  const { MediaConnection } = await import('./connection.js');
  const offered: unknown[] = [];
  const ids: string[] = [];
  const fallbacks: object[] = [];
  const refused: unknown[] = [];
  const hooks = {
    send: (type: string, data: Offer) => {
      if (type !== 'sdpOffer') return;
      offered.push(...Object.values(data.trackIdToTrackMetadata));
      ids.push(...Object.keys(data.trackIdToTrackMetadata));
      fallbacks.push(data.fallbacks);
    },
    received() {},
    refused: (track: LocalTrack) => {
      refused.push(track.metadata);
      media.unpublish(track);
    },
    channelOpened() {},
    lost() {},
  };
  const media = new MediaConnection(hooks as never, () => ({ selfId: 'ann', features }));

  return { media, offered, ids, fallbacks, refused };
}

interface TrackParts {
  bind?: () => Promise<void>;
  init?: RTCRtpTransceiverInit;
  codecs?: readonly unknown[];
}

function track(kind: string, parts: TrackParts = {}): LocalTrack {
  const { bind = () => Promise.resolve(), init = {}, codecs = [undefined] } = parts;
  const rest = { metadata: kind, bitratesBps: 1, bind, unbind() {} };
  return { kind, media: null, init: () => init, codecs, ...rest } as unknown as LocalTrack;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('does not publish a track that is unpublished while another is being added', async () => {
  const { media, offered } = await connect();
  let bound = (): void => undefined;
  // The sender of a muted microphone is emptied first.
  const mic = track('audio', { bind: () => new Promise((resolve) => (bound = resolve)) });
  const camera = track('video');
  media.publish(mic).catch(() => undefined);
  media.publish(camera).catch(() => undefined);
  media.offerData({ tracksTypes: {}, integratedTurnServers: [] });
  await settled();
  media.unpublish(camera);
  bound();
  await settled();
  expect(offered).toEqual(['audio']);
});

test('refuses a track whose options the browser does not take, and publishes the others', async () => {
  const { media, offered, refused } = await connect();
  const camera = media.publish(track('video', { init: { sendEncodings: [{ scalabilityMode: 'L9T9' }] as never } }));
  media.publish(track('audio')).catch(() => undefined);
  media.offerData({ tracksTypes: {}, integratedTurnServers: [] });
  await expect(camera).rejects.toMatchObject({
    code: 'PUBLISH_REFUSED',
    message: 'the browser does not send video with these options: OperationError: no such mode',
  });
  await settled();
  expect([offered, refused]).toEqual([['audio'], ['video']]);
});

/** Returns a camera as the application publishes it. */
function cameraOf(options: object): LocalTrack {
  const media = { kind: 'video', contentHint: '', addEventListener: () => undefined } as unknown as MediaStreamTrack;
  const host = { sendTrackEvent() {}, removeTrack: async () => undefined, localTrackChanged() {} };
  return new LocalTrack(media, { metadata: 'video', ...options } as PublishOptions, host);
}

test('takes a codec of null for none, as pages in JavaScript pass it', () => {
  expect(cameraOf({ codec: null }).codecs).toEqual([undefined]);
});

test.each([
  [{ codecs: [] }, 'no codecs'],
  [{ codecs: 'av1' }, 'a is none of vp8,h264,vp9,av1,h265'],
  [{ codecs: 5 }, 'track.codecs.slice'],
  [{ codecs: ['theora', 'vp8'] }, 'theora is none of vp8,h264,vp9,av1,h265'],
  [{ codecs: ['vp8', 'theora'] }, 'theora is none of vp8,h264,vp9,av1,h265'],
  [{ codec: 'VP9' }, 'VP9 is none of vp8,h264,vp9,av1,h265'],
  [{ codec: 'video/vp9' }, 'video/vp9 is none of vp8,h264,vp9,av1,h265'],
])('refuses %j, says why, and publishes the others', async (options, reason) => {
  const { media, offered, refused } = await connect(['codecs', 'fallback']);
  const camera = media.publish(cameraOf(options));
  media.publish(track('audio')).catch(() => undefined);
  media.offerData({ tracksTypes: {}, integratedTurnServers: [] });
  await expect(camera).rejects.toMatchObject({
    code: 'PUBLISH_REFUSED',
    message: expect.stringContaining(`the browser does not send video with these options: TypeError: ${reason}`),
  });
  await settled();
  expect([offered, refused]).toEqual([['audio'], ['video']]);
});

test('refuses a track whose muted senders cannot be emptied, and publishes the others', async () => {
  const { media, offered } = await connect();
  const camera = media.publish(track('video', { bind: () => Promise.reject(new Error('no sender')) }));
  media.publish(track('audio')).catch(() => undefined);
  media.offerData({ tracksTypes: {}, integratedTurnServers: [] });
  await expect(camera).rejects.toMatchObject({ code: 'PUBLISH_REFUSED' });
  await settled();
  expect(offered).toEqual(['audio']);
});

test('sends nothing of a track whose second encoding is refused', async () => {
  const { media } = await connect(['fallback']);
  media.publish(cameraOf({ codecs: ['vp8', 'theora'] })).catch(() => undefined);
  media.offerData({ tracksTypes: {}, integratedTurnServers: [] });
  await settled();
  const [first] = FakeConnection.last.transceivers;
  expect(FakeConnection.last.removed).toEqual([(first as unknown as RTCRtpTransceiver).sender]);
});

test('refuses no track of a connection that is closed while it adds them', async () => {
  const { media, refused } = await connect();
  let bound = (): void => undefined;
  const mic = media.publish(track('audio', { bind: () => new Promise((resolve) => (bound = resolve)) }));
  const camera = media.publish(track('video'));
  media.offerData({ tracksTypes: {}, integratedTurnServers: [] });
  await settled();
  media.close();
  bound();
  for (const publication of [mic, camera]) await expect(publication).rejects.toMatchObject({ code: 'LEFT' });
  await settled();
  expect(refused).toEqual([]);
});

test('offers the layers of AV1, sent and received, where the browser can', async () => {
  const { media } = await connect();
  media.publish(track('video')).catch(() => undefined);
  media.offerData({ tracksTypes: { video: 1 }, integratedTurnServers: [] });
  await settled();
  const layers = { uri: 'https://x/av1-rtp-spec/', direction: 'sendonly' };
  const offered = [{ uri: 'urn:mid', direction: 'stopped' }, layers];
  expect(FakeConnection.last.transceivers.map(({ extensions }) => extensions)).toEqual([offered, offered]);
});

test.each([
  ['names', ['codecs', 'fallback'], 2],
  ['does not add', ['codecs'], 1],
])('%s the second encoding of a track, if the server supports %p', async (_does, features, lines) => {
  const { media, fallbacks } = await connect(features);
  const camera = track('video', { codecs: ['vp9', 'vp8'] });
  media.publish(camera).catch(() => undefined);
  media.offerData({ tracksTypes: {}, integratedTurnServers: [] });
  await settled();
  expect(FakeConnection.last.transceivers).toHaveLength(lines);
  expect(fallbacks).toEqual([lines === 2 ? { '1': expect.stringContaining('ann:') } : {}]);
});

test.each([
  [
    'is sent while the server wants it',
    ['fallback'],
    [
      [],
      [
        [true, true],
        [false, false],
      ],
    ],
  ],
  ['does not exist with a server that does not know it', [], [[]]],
])('the second encoding of a track %s', async (_does, features, asked) => {
  const { media, ids } = await connect(features);
  media.publish(track('video', { codecs: ['vp9', 'vp8'] })).catch(() => undefined);
  media.offerData({ tracksTypes: {}, integratedTurnServers: [] });
  await settled();
  for (const [trackId, wanted] of [
    [ids[0], true],
    [ids[0], false],
    ['bob:1', true],
  ] as const)
    media.fallbackWanted({ trackId: trackId ?? '', wanted });
  expect(FakeConnection.last.transceivers.map((one) => one.asked)).toEqual(asked);
});
