// Drives a client of the unmodified SDK inside a page and reports its events. Tests call `window.driver`.
import type { Endpoint, JellyfishClient, TrackContext } from '@jellyfish-dev/ts-client-sdk';
import type {
  AddTrackOptions,
  ConnectOptions,
  ConnectionReport,
  Encoding,
  FrameReport,
  InboundReport,
  OutboundReport,
  PageDriver,
  PageEvent,
  RemotePeerReport,
  RemoteTrackReport,
  SourceOptions,
  TransportReport,
} from './driver-api.js';
import { createClapper } from './clapper.js';
import { FrameWatcher } from './frame-watcher.js';
import { createPicture, createTone, type Source } from './picture.js';
import { Listener } from './sound.js';
import { encodeMediaEvent, tapSockets } from './socket-tap.js';

type Client = JellyfishClient<unknown, unknown>;
type Context = TrackContext<unknown, unknown>;
export type ClientClass = new (config?: ConstructorParameters<typeof JellyfishClient<unknown, unknown>>[0]) => Client;

/** The SDK repeats these endlessly (its own defect); reporting each would drown the rest. */
const silent = new Set(['disableTrackEncoding', 'enableTrackEncoding']);

const now = (): number => performance.timeOrigin + performance.now();

type Unstamped<T> = T extends PageEvent ? Omit<T, 'at'> : never;

const losses: ReadonlySet<PageEvent['type']> = new Set(['disconnected', 'socketError', 'socketClose', 'authError']);
let lossesOnly = false;

function report(event: Unstamped<PageEvent>): void {
  if (lossesOnly && !losses.has(event.type)) return;
  void window.reportToTest({ at: now(), ...event } as PageEvent);
}

const json = <T>(value: T): T | null => (value === undefined ? null : (JSON.parse(JSON.stringify(value)) as T));

function describeTrack(ctx: Context): RemoteTrackReport {
  return {
    trackId: ctx.trackId,
    endpointId: ctx.endpoint.id,
    metadata: json(ctx.metadata),
    rawMetadata: json(ctx.rawMetadata as unknown),
    metadataError: ctx.metadataParsingError ? String(ctx.metadataParsingError) : null,
    simulcast: json(ctx.simulcastConfig) ?? null,
    kind: ctx.track?.kind ?? null,
    hasStream: ctx.stream !== null && ctx.stream !== undefined,
  };
}

function describePeer(peer: Endpoint<unknown, unknown>): RemotePeerReport {
  return {
    id: peer.id,
    metadata: json(peer.metadata),
    rawMetadata: json(peer.rawMetadata as unknown),
    metadataError: peer.metadataParsingError ? String(peer.metadataParsingError) : null,
    trackIds: [...(peer.tracks?.keys() ?? [])],
  };
}

function strictParser(raw: unknown): { goodStuff: string } {
  const { goodStuff } = (raw ?? {}) as { goodStuff?: unknown };
  if (typeof goodStuff !== 'string') throw new Error('goodStuff is missing');
  return { goodStuff };
}

export function startDriver(ClientOfSdk: ClientClass): void {
  const sources: Source[] = [];
  const watchers = new Map<string, FrameWatcher>();
  const listeners = new Map<string, Listener>();
  const remote = new Map<string, Context>();
  let client: Client | undefined;

  /** Runs once, as soon as the next offer is sent and the SDK has recorded it. */
  let afterOffer: (() => void) | undefined;

  const tap = tapSockets((direction, { event, data }) => {
    if (!silent.has(event)) report({ type: direction, event, data });
    if (direction === 'sent' && event === 'sdpOffer' && afterOffer) {
      queueMicrotask(afterOffer);
      afterOffer = undefined;
    }
  });

  const source = (index: number): Source => {
    const found = sources[index];
    if (!found) throw new Error(`no source ${index}`);
    return found;
  };
  const joined = (): Client => {
    if (!client) throw new Error('not connected');
    return client;
  };
  const peerConnection = (): RTCPeerConnection | undefined =>
    (joined() as unknown as { webrtc: { connection?: RTCPeerConnection } | null }).webrtc?.connection;
  const socket = (): WebSocket => {
    const current = tap.current();
    if (!current) throw new Error('no socket yet');
    return current;
  };

  function watch(ctx: Context): void {
    const { track, trackId } = ctx;
    remote.set(trackId, ctx);
    unwatch(trackId);
    if (!track) return;
    if (track.kind === 'video') {
      watchers.set(
        trackId,
        new FrameWatcher(track, {
          first: (width, height) => report({ type: 'firstFrame', trackId, width, height }),
          size: (width, height) => report({ type: 'frameSize', trackId, width, height }),
          colour: (colour) => report({ type: 'frameColour', trackId, colour }),
        }),
      );
      return;
    }
    listeners.set(trackId, new Listener(track));
  }

  function unwatch(trackId: string): void {
    watchers.get(trackId)?.close();
    listeners.get(trackId)?.close();
    listeners.delete(trackId);
  }

  function listen(to: Client): void {
    to.on('socketOpen', () => report({ type: 'socketOpen' }));
    to.on('socketError', () => report({ type: 'socketError' }));
    to.on('socketClose', ({ code, reason }) => report({ type: 'socketClose', code, reason }));
    to.on('authSuccess', () => report({ type: 'authSuccess' }));
    to.on('authError', (reason) => report({ type: 'authError', reason }));
    to.on('joinError', (reason: unknown) => report({ type: 'joinError', reason: String(reason) }));
    to.on('disconnected', () => report({ type: 'disconnected' }));
    to.on('joined', (id, peers) => report({ type: 'joined', id, peers: peers.map(describePeer) }));
    to.on('peerJoined', (peer) => report({ type: 'peerJoined', peer: describePeer(peer) }));
    to.on('peerUpdated', (peer) => report({ type: 'peerUpdated', peer: describePeer(peer) }));
    to.on('peerLeft', (peer) => report({ type: 'peerLeft', peer: describePeer(peer) }));
    to.on('trackAdded', (ctx) => {
      report({ type: 'trackAdded', track: describeTrack(ctx) });
      ctx.on('encodingChanged', ({ trackId, encoding, encodingReason }) => {
        if (encoding) report({ type: 'encodingChanged', trackId, encoding, reason: String(encodingReason) });
      });
      ctx.on('voiceActivityChanged', ({ trackId, vadStatus }) => {
        report({ type: 'voiceActivity', trackId, status: vadStatus });
      });
    });
    to.on('trackReady', (ctx) => {
      watch(ctx);
      report({ type: 'trackReady', track: describeTrack(ctx) });
    });
    to.on('trackUpdated', (ctx) => report({ type: 'trackUpdated', track: describeTrack(ctx) }));
    to.on('trackRemoved', (ctx) => {
      unwatch(ctx.trackId);
      report({ type: 'trackRemoved', track: describeTrack(ctx) });
    });
    to.on('bandwidthEstimationChanged', (bps) => report({ type: 'bandwidthEstimation', bps: Number(bps) }));
  }

  /** The client reports only tracks of peers; the endpoint inside it reports those of components. */
  function listenToComponents(to: Client): void {
    const { webrtc } = to as unknown as { webrtc: { on: (event: string, then: (ctx: Context) => void) => void } };
    const ofComponents = (event: 'trackAdded' | 'trackReady' | 'trackRemoved', then: (ctx: Context) => void): void =>
      webrtc.on(event, (ctx) => {
        if ((ctx.endpoint as { type: string }).type === 'webrtc') return;
        then(ctx);
        report({ type: event, track: describeTrack(ctx) });
      });
    ofComponents('trackAdded', () => undefined);
    ofComponents('trackReady', watch);
    ofComponents('trackRemoved', ({ trackId }) => unwatch(trackId));
  }

  function addTrack(index: number, options: AddTrackOptions = {}): Promise<string> {
    const { track, stream } = source(index);
    const { metadata, simulcast, maxBandwidth, streamOf } = options;
    const shared = streamOf === undefined ? stream : source(streamOf).stream;
    const limit = typeof maxBandwidth === 'object' ? new Map(Object.entries(maxBandwidth)) : maxBandwidth;
    return joined().addTrack(
      track,
      shared,
      metadata,
      simulcast ? { enabled: true, activeEncodings: [...simulcast], disabledEncodings: [] } : undefined,
      limit as number | undefined,
    );
  }

  const localTrackIds = (): string[] => [...(joined().getLocalEndpoint()?.tracks.keys() ?? [])];

  function addTrackNow(index: number, options?: AddTrackOptions): string {
    const before = new Set(localTrackIds());
    addTrack(index, options).catch((reason: unknown) => report({ type: 'addFailed', reason: String(reason) }));
    const added = localTrackIds().find((id) => !before.has(id));
    if (!added) throw new Error('the SDK has queued the track: something else is being negotiated');
    return added;
  }

  const sendMediaEvent = (text: string): void => socket().send(encodeMediaEvent(text) as Uint8Array<ArrayBuffer>);

  const muted = new Map<string, RTCRtpSender>();
  const localTrack = (trackId: string): Context => {
    const found = joined().getLocalEndpoint()?.tracks.get(trackId);
    if (!found) throw new Error(`no local track ${trackId}`);
    return found;
  };

  const watcher = (trackId: string): FrameWatcher => {
    const found = watchers.get(trackId);
    if (!found) throw new Error(`no frames are watched for track ${trackId}`);
    return found;
  };

  async function statistics(track: MediaStreamTrack | null | undefined): Promise<Record<string, unknown>[]> {
    if (!track) return [];
    return [...(await joined().getStatistics(track)).values()] as Record<string, unknown>[];
  }

  const mimeTypeOf = (stats: Record<string, unknown>[], entry: Record<string, unknown>): string =>
    String(stats.find((s) => s['id'] === entry['codecId'])?.['mimeType'] ?? '');

  async function inbound(trackId: string): Promise<InboundReport | null> {
    const stats = await statistics(remote.get(trackId)?.track);
    const entry = stats.find((s) => s['type'] === 'inbound-rtp');
    if (!entry) return null;
    const number = (key: string): number => Number(entry[key] ?? 0);
    return {
      kind: String(entry['kind']),
      mimeType: mimeTypeOf(stats, entry),
      framesDecoded: number('framesDecoded'),
      framesDropped: number('framesDropped'),
      freezeCount: number('freezeCount'),
      packetsLost: number('packetsLost'),
      packetsReceived: number('packetsReceived'),
      jitterBufferDelay: number('jitterBufferDelay'),
      jitterBufferEmittedCount: number('jitterBufferEmittedCount'),
      pliCount: number('pliCount'),
      nackCount: number('nackCount'),
    };
  }

  async function outbound(trackId: string): Promise<OutboundReport[]> {
    const stats = await statistics(joined().getLocalEndpoint()?.tracks.get(trackId)?.track);
    return stats
      .filter((s) => s['type'] === 'outbound-rtp')
      .map((s) => ({
        rid: (s['rid'] as Encoding | undefined) ?? null,
        active: Boolean(s['active'] ?? true),
        bytesSent: Number(s['bytesSent'] ?? 0),
        framesEncoded: Number(s['framesEncoded'] ?? 0),
        frameWidth: (s['frameWidth'] as number | undefined) ?? null,
        mimeType: mimeTypeOf(stats, s),
      }));
  }

  function connection(): ConnectionReport | null {
    const pc = peerConnection();
    if (!pc) return null;
    const { midToTrackId } = (joined() as unknown as { webrtc: { midToTrackId: Map<string, string> } }).webrtc;
    return {
      signalingState: pc.signalingState,
      connectionState: pc.connectionState,
      iceConnectionState: pc.iceConnectionState,
      transceivers: pc.getTransceivers().map((t) => `${t.receiver.track.kind}/${t.direction}`),
      mids: Object.fromEntries(midToTrackId),
    };
  }

  async function transport(): Promise<TransportReport | null> {
    const stats = [...(await joined().getStatistics()).values()] as Record<string, unknown>[];
    const entry = stats.find((s) => s['type'] === 'transport');
    if (!entry) return null;
    const pairs = stats.filter((s) => s['type'] === 'candidate-pair');
    const selected = pairs.find((s) => s['id'] === entry['selectedCandidatePairId']);
    return {
      dtlsState: String(entry['dtlsState']),
      iceState: String(entry['iceState']),
      bytesSent: Number(entry['bytesSent'] ?? 0),
      bytesReceived: Number(entry['bytesReceived'] ?? 0),
      outgoingBps: (selected?.['availableOutgoingBitrate'] as number | undefined) ?? null,
      roundTripMs: selected ? Number(selected['currentRoundTripTime'] ?? 0) * 1000 : null,
      pairs: pairs.map((s) => `${String(s['state'])}/${String(s['nominated'])}`),
    };
  }

  async function tone(trackId: string): Promise<{ hz: number; level: number }> {
    const listener = listeners.get(trackId);
    if (!listener) throw new Error(`nobody listens to track ${trackId}`);
    return Promise.resolve(listener.loudest());
  }

  function connect(options: ConnectOptions): void {
    const { token, host, reconnect, strictParsers, addOnJoined } = options;
    client = new ClientOfSdk({
      ...(reconnect === undefined ? {} : { reconnect }),
      ...(strictParsers ? { peerMetadataParser: strictParser, trackMetadataParser: strictParser } : {}),
    });
    listen(client);
    if (addOnJoined) {
      client.on('joined', () => {
        addTrack(addOnJoined.source, addOnJoined.options).catch((reason: unknown) =>
          report({ type: 'addFailed', reason: String(reason) }),
        );
      });
    }
    report({ type: 'connecting' });
    client.connect({ token, peerMetadata: options.metadata, signaling: { host } });
    listenToComponents(client);
  }

  window.driver = {
    createSource: (options: SourceOptions) => {
      const first = sources.length;
      if (options.kind === 'clapper') sources.push(...createClapper(options));
      else sources.push(options.kind === 'picture' ? createPicture(options) : createTone(options));
      return first;
    },
    connect,
    addTrack,
    addTracks: (indices, options) => Promise.all(indices.map((index) => addTrack(index, options))),
    addTrackNow,
    replaceTrack: async (trackId, index, metadata) => {
      // The SDK's type forbids null, but applications pass it to mute, and the SDK forwards it.
      const track = index === null ? (null as unknown as MediaStreamTrack) : source(index).track;
      await joined().replaceTrack(trackId, track, metadata);
    },
    removeTrack: (trackId) => joined().removeTrack(trackId),
    addReplaceRemove: async (first, second) => {
      const trackId = await addTrack(first);
      const replaced = joined().replaceTrack(trackId, source(second).track);
      const removed = joined().removeTrack(trackId);
      await Promise.all([replaced, removed]);
      return trackId;
    },
    muteSender: async (trackId) => {
      const { track } = localTrack(trackId);
      const sender = peerConnection()
        ?.getSenders()
        .find((s) => s.track === track);
      if (!sender) throw new Error(`track ${trackId} is not being sent`);
      muted.set(trackId, sender);
      await sender.replaceTrack(null);
      sendMediaEvent(JSON.stringify({ type: 'muteTrack', data: { trackId } }));
    },
    unmuteSender: async (trackId) => {
      await muted.get(trackId)?.replaceTrack(localTrack(trackId).track);
      sendMediaEvent(JSON.stringify({ type: 'unmuteTrack', data: { trackId } }));
    },
    addAndUpdateWhileOffered: (index, first, second) => {
      const added = addTrack(index, { metadata: first });
      const [trackId] = localTrackIds().slice(-1);
      if (!trackId) throw new Error('the SDK has queued the track');
      afterOffer = () => joined().updateTrackMetadata(trackId, second);
      return added;
    },
    setEnabled: (trackId, enabled) => {
      const { track } = localTrack(trackId);
      if (track) track.enabled = enabled;
    },
    localTrackIds,
    updatePeerMetadata: (metadata) => joined().updatePeerMetadata(metadata),
    updateTrackMetadata: (trackId, metadata) => joined().updateTrackMetadata(trackId, metadata),
    setTarget: (trackId, encoding) => joined().setTargetTrackEncoding(trackId, encoding),
    enableEncoding: (trackId, encoding) => joined().enableTrackEncoding(trackId, encoding),
    disableEncoding: (trackId, encoding) => joined().disableTrackEncoding(trackId, encoding),
    setTrackBandwidth: (trackId, kbps) => joined().setTrackBandwidth(trackId, kbps),
    setEncodingBandwidth: (trackId, encoding, kbps) => joined().setEncodingBandwidth(trackId, encoding, kbps),
    leave: () => joined().leave(),
    disconnect: () => joined().disconnect(),
    closeSocket: () => socket().close(),
    sendRaw: (frame) => socket().send(typeof frame === 'string' ? frame : Uint8Array.from(frame)),
    sendMediaEvent,
    reportLossesOnly: () => {
      lossesOnly = true;
    },
    awaitFrames: (trackId, count): Promise<FrameReport> => watcher(trackId).after(count),
    frames: (trackId) => watcher(trackId).report(),
    resetGap: (trackId) => watcher(trackId).resetGap(),
    tone,
    inbound,
    outbound,
    connection,
    transport,
    remoteTracks: () => Object.values(joined().getRemoteTracks()).map(describeTrack),
    remotePeers: () => Object.values(joined().getRemotePeers()).map(describePeer),
  } satisfies PageDriver;
}
