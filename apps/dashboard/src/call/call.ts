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
  type ChatMessage,
  nameOfPeer,
  newsOf,
  type RemotePeerView,
  type RemoteTrackView,
  type TrackMetadata,
  trackMetadataOf,
  type Variant,
} from './call-view.js';

/** Label of the messages between the pages of a room. */
const CHAT = 'chat';
const MAX_MESSAGES = 500;
/** Characters of a message that are shown; any client of the room may have sent it. */
const MAX_TEXT = 2_000;
/** Attempts before the page gives up and shows the entrance again: about 20 s, long enough for a node to restart. */
const MAX_ATTEMPTS = 20;
const DEVICES = { video: 'camera', audio: 'microphone' } as const;

export class Call {
  readonly #api: Api;
  readonly #seat: Seat;
  readonly #client = new RoomClient();
  readonly #listeners = new Set<() => void>();
  /** What the person chose; the other tracks follow the size of their tile. */
  readonly #chosen = new Map<string, Variant>();
  #view: CallView;
  readonly #own: { video?: LocalTrack; audio?: LocalTrack } = {};
  /** Kinds that the server does not accept; the person may try again. */
  readonly #withdrawn = new Set<LocalTrack['kind']>();
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
      ownPicture: media.video.track,
      ownSource: media.video.source,
      cameraOn: true,
      microphoneOn: true,
      mutedByServer: [],
      problem: null,
      notice: media.notice,
      news: '',
      sharing: false,
      messages: [],
    };
    const client = this.#client;
    client.on('changed', () => this.#refresh());
    client.on('connected', () => (this.#everJoined = true));
    client.on('peerJoined', (peer) => {
      // Those who were here before have not come now.
      if (this.#everJoined) this.#change({ news: `${nameOfPeer(peer)} joined` });
    });
    client.on('peerLeft', (peer) => this.#change({ news: `${nameOfPeer(peer)} left` }));
    client.on('data', ({ label, from, data }) => {
      if (label === CHAT && typeof data === 'string') this.#received(from, data);
    });
    client.on('dataClosed', (_label, reason) => this.#change({ notice: `The server closed the chat: ${reason}` }));
    client.on('unpublished', (track) => this.#refused(track));
    client.on('ended', (reason) => this.#end(this.#problemOf(reason)));
    // Before there is a connection, so that a person can mute while the page still connects.
    Promise.all([this.#publish('video'), this.#publish('audio')]).catch((error: unknown) =>
      this.#failed('A track could not be published', error),
    );
    const { token } = seat;
    client
      .connect({
        // The node of the room may refuse websockets of this page, which is not its own (`JF_CHECK_ORIGIN`).
        url: api.socketUrl('peer'),
        token,
        metadata: { name },
        reconnect: { maxAttempts: MAX_ATTEMPTS },
        renew: ({ code }) => Promise.resolve(code === 'UNREACHABLE' ? { url: seat.socketUrl, token } : null),
      })
      // The event `ended` tells of a connection that failed.
      .catch(() => undefined);
    // Without it no message arrives; `say` reports why there is no chat.
    client.openData(CHAT).catch(() => undefined);
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
    // A stream or a recording of the room has nothing to show.
    const shown = peers.filter(({ type, tracks }) => type === 'webrtc' || tracks.length > 0);
    const views = shown.map((peer) => this.#peerView(peer));
    const news = newsOf(this.#view.peers, views);
    this.#change({
      ...(news === undefined ? {} : { news }),
      phase: state,
      peers: views,
      ownPicture: this.#own.video?.media ?? this.media.video.track,
      ownSource: (this.#own.video?.metadata as TrackMetadata | undefined)?.source ?? this.media.video.source,
      cameraOn: this.#isOn('video'),
      microphoneOn: this.#isOn('audio'),
      mutedByServer: [this.#own.audio, this.#own.video].flatMap((track) =>
        track?.mutedByServer === true ? [DEVICES[track.kind]] : [],
      ),
    });
  }

  #isOn(kind: LocalTrack['kind']): boolean {
    return this.#own[kind]?.muted === false;
  }

  async #publish(kind: LocalTrack['kind']): Promise<void> {
    const { track, source, reopen } = this.media[kind];
    const media = track.readyState === 'live' ? track : ((await reopen?.()) ?? track);
    if (this.#view.phase === 'ended') return media.stop();
    const metadata: TrackMetadata = { source, active: true };
    this.#own[kind] = await this.#client.publish(media, {
      metadata,
      simulcast: kind === 'video',
      ...(reopen === undefined ? {} : { reopen }),
    });
    this.#refresh();
  }

  /** Tries again what the server refused. */
  async #publishAgain(kind: LocalTrack['kind']): Promise<void> {
    if (!this.#withdrawn.delete(kind)) return;
    this.#change({ notice: null });
    await this.#publish(kind).catch((error: unknown) => {
      this.#withdrawn.add(kind);
      throw error;
    });
  }

  /** The server does not accept the track, or no longer. */
  #refused(track: LocalTrack): void {
    if ((track.metadata as TrackMetadata).source === 'screen') return void this.stopScreen();
    delete this.#own[track.kind];
    if (this.media[track.kind].reopen !== undefined) track.media?.stop();
    this.#withdrawn.add(track.kind);
    this.#change({ notice: `The server accepts no ${track.kind} from you any more.` });
    return this.#refresh();
  }

  #failed(what: string, error: unknown): void {
    if (this.#view.phase === 'ended') return;
    this.#change({ notice: `${what}: ${error instanceof Error ? error.message : String(error)}` });
  }

  #peerView(peer: RemotePeer): RemotePeerView {
    return {
      id: peer.id,
      name: nameOfPeer(peer),
      isPerson: peer.type === 'webrtc',
      tracks: peer.tracks.flatMap((track): RemoteTrackView[] => {
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

  /** Turns the camera or the microphone on or off. */
  async setOn(kind: LocalTrack['kind'], on: boolean): Promise<void> {
    const track = this.#own[kind];
    try {
      if (track === undefined) return on ? await this.#publishAgain(kind) : undefined;
      await (on ? track.unmute() : track.mute());
      this.#closeAfterCall(track);
      track.setMetadata({ ...(track.metadata as TrackMetadata), active: on });
    } catch (error) {
      this.#failed(`The ${DEVICES[kind]} does not start`, error);
    }
  }

  /** Uses another camera or microphone from now on. */
  async useDevice(kind: DeviceKind, id: string): Promise<void> {
    const track = this.#own[kind === 'camera' ? 'video' : 'audio'];
    if (track === undefined) return;
    try {
      const wasMuted = track.muted;
      const opened = await openDevice(kind, { id });
      // Another device may have been chosen, or opened by an unmute, up to this very moment.
      const before = await track.replace(opened);
      before?.stop();
      if (wasMuted) await track.unmute();
      // The person may have muted meanwhile: the next unmute opens the device again, if it can.
      else if (track.muted && this.media[track.kind].reopen !== undefined) opened.stop();
      this.#closeAfterCall(track);
      track.setMetadata({ source: kind, active: !track.muted } satisfies TrackMetadata);
    } catch (error) {
      this.#failed(`The ${kind} does not start`, error);
    }
  }

  /** The device may have been opened too late for the end of the call. */
  #closeAfterCall(track: LocalTrack): void {
    if (this.#view.phase === 'ended') track.media?.stop();
  }

  /** Asks the person for a screen and shows it to the others. */
  async shareScreen(): Promise<void> {
    let opened: readonly MediaStreamTrack[] = [];
    try {
      opened = await openScreen();
      // The browser has a button of its own to stop it.
      opened[0]?.addEventListener('ended', () => void this.stopScreen());
      const metadata: TrackMetadata = { source: 'screen', active: true };
      for (const media of opened) {
        const shared = await this.#client.publish(media, { metadata, simulcast: false });
        this.#screen = [...this.#screen, shared];
      }
      if (this.#view.phase === 'ended' || opened[0]?.readyState === 'ended') return await this.stopScreen();
      return this.#change({ sharing: true, news: 'You share a screen' });
    } catch (error) {
      for (const media of opened) media.stop();
      await this.stopScreen();
      return this.#failed('No screen is shared', error);
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

  /** Sends a text to all others in the room. @throws RoomClientError */
  async say(text: string): Promise<void> {
    await this.#client.sendData(CHAT, text);
    this.#show({ name: this.#view.name, own: true, text });
  }

  #received(from: string, data: string): void {
    const name = this.#view.peers.find(({ id }) => id === from)?.name ?? 'Someone';
    const text = data.slice(0, MAX_TEXT);
    this.#show({ name, own: false, text });
    this.#change({ news: `${name} says: ${text}` });
  }

  #show(message: Omit<ChatMessage, 'number'>): void {
    const shown = { number: this.#messages++, ...message };
    this.#change({ messages: [...this.#view.messages, shown].slice(-MAX_MESSAGES) });
  }

  dismiss(): void {
    this.#change({ notice: null, problem: null });
  }

  #problemOf(reason: RoomClientError): Problem | null {
    if (reason.code === 'UNREACHABLE' && !this.#everJoined) {
      return serverUnreachable(this.#api.host);
    }
    return problemOfEnd(reason);
  }

  #end(problem: Problem | null): void {
    if (this.#view.phase === 'ended') return;
    removeEventListener('pagehide', this.leave);
    for (const track of [...Object.values(this.#own), ...this.#screen]) track.media?.stop();
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
