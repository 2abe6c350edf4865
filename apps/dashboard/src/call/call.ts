// One call: the client, the local media, and the view that React subscribes to.
import {
  type DeviceKind,
  type LocalTrack,
  openDevice,
  openScreen,
  type RemotePeer,
  RoomClient,
  type RoomClientError,
} from '@bloom/client';
import type { Api, Seat } from '../api.js';
import type { LocalMedia } from '../media/local-media.js';
import { type Problem, problemOfEnd, serverUnreachable } from '../problem.js';
import {
  type CallView,
  chatOf,
  nameOf,
  newsOf,
  type RemotePeerView,
  type RemoteTrackView,
  type TrackMetadata,
  trackMetadataOf,
  type Variant,
} from './call-view.js';

/** Topic of the messages between the pages of a room. */
const CHAT = 'chat';
const MAX_MESSAGES = 500;
/** Attempts before the page gives up and shows the entrance again. */
const MAX_ATTEMPTS = 5;

export class Call {
  readonly #api: Api;
  readonly #seat: Seat;
  readonly #client = new RoomClient();
  readonly #listeners = new Set<() => void>();
  /** What the person chose; the other tracks follow the size of their tile. */
  readonly #chosen = new Map<string, Variant>();
  #view: CallView;
  #video: LocalTrack | undefined;
  #audio: LocalTrack | undefined;
  #screen: readonly LocalTrack[] = [];
  #everJoined = false;
  #messages = 0;

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
      ownPicture: media.video,
      cameraOn: true,
      microphoneOn: true,
      problem: null,
      notice: media.notice,
      news: '',
      sharing: false,
      messages: [],
    };
    const client = this.#client;
    client.on('changed', () => this.#refresh());
    client.on('connected', () => (this.#everJoined = true));
    client.on('peerJoined', (peer) => this.#change({ news: `${nameOf(peer.metadata, peer.id)} joined` }));
    client.on('peerLeft', (peer) => this.#change({ news: `${nameOf(peer.metadata, peer.id)} left` }));
    client.on('message', (topic, data) => this.#received(topic, data));
    client.on('ended', (reason) => this.#end(this.#problemOf(reason)));
    client
      .connect({ url: seat.socketUrl, token: seat.token, metadata: { name }, reconnect: { maxAttempts: MAX_ATTEMPTS } })
      // `ended` reports a failure.
      .then(() => this.#publish())
      .catch(() => undefined);
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

  #refresh(): void {
    const { state, peers } = this.#client;
    if (this.#view.phase === 'ended' || state === 'idle' || state === 'ended') return;
    const views = peers.map((peer) => this.#peerView(peer));
    const news = newsOf(this.#view.peers, views);
    this.#change({
      ...(news === undefined ? {} : { news }),
      phase: state,
      peers: views,
      ownPicture: this.#video?.media ?? this.media.video,
      cameraOn: this.#video?.muted !== true,
      microphoneOn: this.#audio?.muted !== true,
    });
  }

  async #publish(): Promise<void> {
    const { video, audio, videoKind, audioKind, reopenVideo, reopenAudio } = this.media;
    try {
      const options = { metadata: { source: videoKind, active: true }, simulcast: true };
      this.#video = await this.#client.publish(video, { ...options, ...(reopenVideo ? { reopen: reopenVideo } : {}) });
      this.#audio = await this.#client.publish(audio, {
        metadata: { source: audioKind, active: true },
        ...(reopenAudio ? { reopen: reopenAudio } : {}),
      });
    } catch (error) {
      if (this.#view.phase !== 'ended') this.#change({ notice: `A track could not be published: ${String(error)}` });
    }
  }

  #peerView({ id, metadata, tracks }: RemotePeer): RemotePeerView {
    return {
      id,
      name: nameOf(metadata, id),
      tracks: tracks.flatMap((track): RemoteTrackView[] => {
        const { media, variants, variant, speaking } = track;
        if (media === null) return [];
        return [
          {
            id: track.id,
            kind: media.kind === 'video' ? 'video' : 'audio',
            track: media,
            ...trackMetadataOf(track.metadata),
            variants,
            chosen: this.#chosen.get(track.id) ?? null,
            current: variant,
            speaking,
          },
        ];
      }),
    };
  }

  /** Chooses a variant, or the one that fits the tile. */
  choose(trackId: string, variant: Variant | null): void {
    if (variant === null) this.#chosen.delete(trackId);
    else {
      this.#chosen.set(trackId, variant);
      this.#client.setVariant(trackId, variant);
    }
    this.#refresh();
  }

  /** Chooses the quality by the size of the element, until the returned function is called. */
  watch(trackId: string, element: HTMLElement): () => void {
    const stop = this.#client.watch(trackId, element);
    return () => {
      stop();
      // A picture that no element is watched for is paused, unless the person chose its quality.
      if (this.#chosen.has(trackId)) this.#client.setPaused(trackId, false);
    };
  }

  setCamera(on: boolean): void {
    void this.#setOn(this.#video, on, 'The camera does not start');
  }

  setMicrophone(on: boolean): void {
    void this.#setOn(this.#audio, on, 'The microphone does not start');
  }

  async #setOn(track: LocalTrack | undefined, on: boolean, failure: string): Promise<void> {
    if (track === undefined) return;
    try {
      await (on ? track.unmute() : track.mute());
      track.setMetadata({ ...(track.metadata as TrackMetadata), active: on });
    } catch (error) {
      this.#change({ notice: `${failure}: ${error instanceof Error ? error.message : String(error)}` });
    }
  }

  /** Uses another camera or microphone from now on. */
  async useDevice(kind: DeviceKind, id: string): Promise<void> {
    const track = kind === 'camera' ? this.#video : this.#audio;
    if (track === undefined) return;
    try {
      const before = track.media;
      await track.replace(await openDevice(kind, { id }));
      before?.stop();
      if (track.muted) await track.unmute();
      track.setMetadata({ source: kind, active: true } satisfies TrackMetadata);
    } catch (error) {
      this.#change({ notice: `The ${kind} does not start: ${error instanceof Error ? error.message : String(error)}` });
    }
  }

  /** Asks the person for a screen and shows it to the others. */
  async shareScreen(): Promise<void> {
    try {
      const opened = await openScreen();
      const metadata: TrackMetadata = { source: 'screen', active: true };
      this.#screen = await Promise.all(
        opened.map((media) => this.#client.publish(media, { metadata, simulcast: false })),
      );
      // The browser has a button of its own to stop it.
      opened[0]?.addEventListener('ended', () => void this.stopScreen());
      this.#change({ sharing: true, news: 'You share a screen' });
    } catch (error) {
      this.#change({ notice: `No screen is shared: ${error instanceof Error ? error.message : String(error)}` });
    }
  }

  async stopScreen(): Promise<void> {
    const shared = this.#screen;
    this.#screen = [];
    for (const track of shared) {
      track.media?.stop();
      await track.unpublish();
    }
    if (shared.length > 0) this.#change({ sharing: false, news: 'You no longer share a screen' });
  }

  /** Sends a text to all others in the room. @throws Problem */
  async say(text: string): Promise<void> {
    await this.#api.sendMessage(this.#seat.roomId, CHAT, { from: this.#client.id, text });
  }

  #received(topic: string, data: unknown): void {
    const message = topic === CHAT ? chatOf(data) : undefined;
    if (message === undefined) return;
    const own = message.from === this.#client.id;
    const name = own ? this.#view.name : (this.#view.peers.find(({ id }) => id === message.from)?.name ?? 'Someone');
    const shown = { number: this.#messages++, name, own, text: message.text };
    this.#change({
      messages: [...this.#view.messages, shown].slice(-MAX_MESSAGES),
      ...(own ? {} : { news: `${name} says: ${message.text}` }),
    });
  }

  dismiss(): void {
    this.#change({ notice: null, problem: null });
  }

  #problemOf(reason: RoomClientError): Problem | null {
    if (reason.code === 'UNREACHABLE' && !this.#everJoined) {
      return serverUnreachable(this.#seat.socketUrl.split('/')[0] ?? '');
    }
    return problemOfEnd(reason);
  }

  #end(problem: Problem | null): void {
    if (this.#view.phase === 'ended') return;
    removeEventListener('pagehide', this.leave);
    for (const track of [this.#video, this.#audio, ...this.#screen]) track?.media?.stop();
    this.media.stop();
    this.#change({ phase: 'ended', problem, peers: [] });
  }

  /** Leaves the room and gives the seat back. Safe to call twice. */
  readonly leave = (): void => {
    if (this.#view.phase === 'ended') return;
    this.#end(null);
    this.#client.leave();
    this.#api.leaveSeat(this.#seat);
  };
}
