// One call: the SDK's client, the local media, and the view that React subscribes to.
import { JellyfishClient } from '@jellyfish-dev/ts-client-sdk';
import type { Api, Seat } from '../api.js';
import type { LocalMedia } from '../media/local-media.js';
import { Problem, problemOfClose, serverUnreachable } from '../problem.js';
import {
  type CallView,
  nameOf,
  type PeerMetadata,
  type RemotePeerView,
  type RemoteTrackView,
  type TrackMetadata,
  trackMetadataOf,
  type Variant,
} from './call-view.js';

/** Reconnect attempts of the SDK, with 0.5 s, 1 s, 1.5 s ... before each. */
const MAX_ATTEMPTS = 5;

const mediaFailed = new Problem(
  'connection-lost',
  'Picture and sound do not come through',
  'The media connection failed. Is UDP to the server blocked, or its announced address wrong (JF_WEBRTC_TURN_IP)?',
);

export class Call {
  readonly #api: Api;
  readonly #seat: Seat;
  readonly #client = new JellyfishClient<PeerMetadata, TrackMetadata>({ reconnect: { maxAttempts: MAX_ATTEMPTS } });
  readonly #listeners = new Set<() => void>();
  readonly #targets = new Map<string, Variant>();
  #view: CallView;
  #published = false;
  #everJoined = false;
  #closedSockets = 0;
  #refreshing = false;

  constructor(
    api: Api,
    seat: Seat,
    readonly media: LocalMedia,
    name: string,
  ) {
    this.#api = api;
    this.#seat = seat;
    this.#view = {
      phase: 'connecting',
      roomId: seat.roomId,
      name,
      peers: [],
      cameraOn: true,
      microphoneOn: true,
      problem: null,
      notice: media.notice,
    };
    this.#listen();
    const slash = seat.socketUrl.indexOf('/');
    this.#client.connect({
      token: seat.token,
      peerMetadata: { name },
      signaling: {
        protocol: location.protocol === 'https:' ? 'wss' : 'ws',
        host: seat.socketUrl.slice(0, slash),
        path: seat.socketUrl.slice(slash),
      },
    });
    addEventListener('pagehide', this.leave);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly view = (): CallView => this.#view;

  #change(change: Partial<CallView>): void {
    this.#view = { ...this.#view, ...change };
    for (const listener of this.#listeners) listener();
  }

  #listen(): void {
    const client = this.#client;
    client.on('joined', () => {
      this.#everJoined = true;
      this.#closedSockets = 0;
      this.#change({ phase: 'connected', problem: null });
      this.#publish();
      this.#refresh();
    });
    client.on('authError', (reason) => this.#end(problemOfClose(reason)));
    client.on('socketClose', ({ reason }) => this.#socketClosed(reason));
    client.on('joinError', () => this.#change({ problem: mediaFailed }));
    const refresh = (): void => this.#refresh();
    for (const event of [
      'peerJoined',
      'peerUpdated',
      'peerLeft',
      'trackReady',
      'trackUpdated',
      'trackRemoved',
    ] as const) {
      client.on(event, refresh);
    }
    // Muted while the track was still on its way, at first or after a reconnect.
    client.on('localTrackAdded', ({ trackId, track, trackMetadata }) => {
      if (trackMetadata !== undefined && trackMetadata.active !== track.enabled) {
        client.updateTrackMetadata(trackId, { ...trackMetadata, active: track.enabled });
      }
    });
    client.on('trackAdded', (ctx) => {
      ctx.on('encodingChanged', refresh);
      ctx.on('voiceActivityChanged', refresh);
    });
  }

  #socketClosed(reason: string): void {
    if (this.#view.phase === 'ended') return;
    this.#closedSockets += 1;
    const final = reason === 'Peer removed' || reason === 'Room stopped';
    if (!final && this.#closedSockets <= MAX_ATTEMPTS) {
      return this.#change({ phase: this.#everJoined ? 'reconnecting' : 'connecting', peers: [] });
    }
    const host = this.#seat.socketUrl.split('/')[0] ?? '';
    this.#end(this.#everJoined || final ? problemOfClose(reason) : serverUnreachable(host));
  }

  #publish(): void {
    // After a reconnect the SDK adds the tracks again by itself.
    if (this.#published) return;
    this.#published = true;
    const { video, audio, stream, videoKind, audioKind } = this.media;
    const failed = (error: unknown): void => {
      if (this.#view.phase === 'connected')
        this.#change({ notice: `A track could not be published: ${String(error)}` });
    };
    this.#client
      .addTrack(
        video,
        stream,
        { source: videoKind, active: video.enabled },
        { enabled: true, activeEncodings: ['l', 'm', 'h'], disabledEncodings: [] },
      )
      .catch(failed);
    this.#client.addTrack(audio, stream, { source: audioKind, active: audio.enabled }).catch(failed);
  }

  /** Reads everything again once the SDK has handled the present event: it emits before it stores. */
  #refresh(): void {
    if (this.#refreshing) return;
    this.#refreshing = true;
    queueMicrotask(() => {
      this.#refreshing = false;
      if (this.#view.phase !== 'ended') this.#change({ peers: this.#peers() });
    });
  }

  #peers(): RemotePeerView[] {
    const tracks = Object.values(this.#client.getRemoteTracks());
    return Object.values(this.#client.getRemotePeers()).map(({ id, rawMetadata }) => ({
      id,
      name: nameOf(rawMetadata, id),
      tracks: tracks
        .filter((ctx) => ctx.endpoint.id === id)
        .flatMap((ctx): RemoteTrackView[] => {
          const { track, trackId, simulcastConfig, encoding, vadStatus } = ctx;
          if (!track) return [];
          return [
            {
              id: trackId,
              kind: track.kind === 'video' ? 'video' : 'audio',
              track,
              ...trackMetadataOf(ctx.rawMetadata),
              variants: simulcastConfig?.enabled ? simulcastConfig.activeEncodings : [],
              target: this.#targets.get(trackId) ?? 'm',
              current: encoding ?? null,
              speaking: vadStatus === 'speech',
            },
          ];
        }),
    }));
  }

  chooseVariant(trackId: string, variant: Variant): void {
    this.#targets.set(trackId, variant);
    this.#client.setTargetTrackEncoding(trackId, variant);
    this.#refresh();
  }

  setCamera(on: boolean): void {
    this.#setEnabled(this.media.video, this.media.videoKind, on);
    this.#change({ cameraOn: on });
  }

  setMicrophone(on: boolean): void {
    this.#setEnabled(this.media.audio, this.media.audioKind, on);
    this.#change({ microphoneOn: on });
  }

  #setEnabled(track: MediaStreamTrack, source: TrackMetadata['source'], on: boolean): void {
    track.enabled = on;
    // Ids change with each reconnect, so the track is found by its media.
    for (const [id, ctx] of this.#client.getLocalEndpoint()?.tracks ?? []) {
      if (ctx.track === track) this.#client.updateTrackMetadata(id, { source, active: on });
    }
  }

  dismiss(): void {
    this.#change({ notice: null, problem: null });
  }

  #end(problem: Problem | null): void {
    if (this.#view.phase === 'ended') return;
    removeEventListener('pagehide', this.leave);
    this.#change({ phase: 'ended', problem, peers: [] });
    this.#client.disconnect();
    // The SDK schedules a reconnect before it reports a close; only an authentication cancels it.
    this.#client.emit('authSuccess');
    this.media.stop();
  }

  /** Leaves the room and gives the seat back. Safe to call twice. */
  readonly leave = (): void => {
    if (this.#view.phase === 'ended') return;
    this.#end(null);
    this.#api.leaveSeat(this.#seat);
  };
}
