import { reconnectDelayMs } from './backoff.js';
import type { ClientEvents, ClientState, ConnectOptions, Seat } from './client-types.js';
import { MediaConnection } from './connection.js';
import { Conversations, type SendOptions } from './data.js';
import { Emitter } from './emitter.js';
import { errorOfClose, mustBeSendable, noData, RESTART, RoomClientError, TOO_BIG, unreachable } from './errors.js';
import * as limits from './limits.js';
import { LocalTrack, type PublishOptions } from './local-track.js';
import { IDLE, type MediaState } from './media-state.js';
import type { CallMedia, CallSession, CallSocket } from './moving.js';
import { Playback } from './playback.js';
import { type RemoteChange, type RemotePeer, RemotePeers, type RemoteTrack } from './remote.js';
import { Route } from './route.js';
import { encodeCustom, encodeEvent, FEATURES, type Permissions, type Received, type Variant } from './signaling.js';
import { PeerSocket } from './socket.js';
import { readStats, type CallStats } from './stats.js';
import { Viewing } from './viewing.js';
import { watchForWakeUp } from './wake-up.js';

/**
 * One participant in one room. `PeerMetadata` and `TrackMetadata` are the types that the page expects of the others'
 * metadata.
 */
export class RoomClient<PeerMetadata = unknown, TrackMetadata = unknown> extends Emitter<
  ClientEvents<PeerMetadata, TrackMetadata>
> {
  readonly #remote = new RemotePeers();
  readonly #viewing = new Viewing({
    track: (id) => this.track(id),
    pauses: () => this.#features.includes('pause'),
    send: (type, data) => this.#socket?.send(encodeCustom(type, data)),
    play: (element) => this.play(element),
  });
  readonly #conversations = new Conversations({
    open: (label, options) => this.#openChannel(label, options),
    received: (message) => this.emit('data', message),
  });
  readonly #playback = new Playback((play) => this.emit('audioBlocked', play));
  #state: ClientState = 'idle';
  #options: ConnectOptions | undefined;
  #route = new Route({ url: '', token: '' });
  #metadata: unknown = null;
  /** Protocol additions that the server supports too. */
  #features: readonly string[] = [];
  #selfId = '';
  #localTracks: readonly LocalTrack[] = [];
  #socket: CallSocket | undefined;
  #media: CallMedia | undefined;
  #mediaState: MediaState = IDLE;
  #permissions: Permissions | null = null;
  #attempt = 0;
  /** Time when the connection was lost or the network last changed, by `Date.now`. */
  #outageSince = 0;
  /** Successive seats refused or lost at once. Their number lengthens the pauses, since the server does answer. */
  #refusals = 0;
  /** Time when the current connection was established, by `Date.now`. */
  #connectedAt = 0;
  #everConnected = false;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #outageTimer: ReturnType<typeof setTimeout> | undefined;
  #probeTimer: ReturnType<typeof setTimeout> | undefined;
  #stopWatching: (() => void) | undefined;
  #started: { resolve: () => void; reject: (error: RoomClientError) => void } | undefined;

  get state(): ClientState {
    return this.#state;
  }

  /** Whether packets can pass to the server, which an open websocket does not imply. Changes with the state. */
  get media(): MediaState {
    return this.#mediaState;
  }

  /** What the backend allows this participant; null until the server has reported it. A change creates a new object. */
  get permissions(): Permissions | null {
    return this.#permissions;
  }

  /** Id of this participant; empty before the first connection. */
  get id(): string {
    return this.#selfId;
  }

  /** The other participants. The array stays the same until something changes. */
  get peers(): readonly RemotePeer<PeerMetadata, TrackMetadata>[] {
    return this.#remote.list as readonly RemotePeer<PeerMetadata, TrackMetadata>[];
  }

  /** The tracks that this participant publishes. The array stays the same until something changes. */
  get localTracks(): readonly LocalTrack[] {
    return this.#localTracks;
  }

  /**
   * Joins the room of the token. Resolves when the other participants are known; rejects with a RoomClientError if the
   * server cannot be reached or refuses. From then on, the client reconnects by itself until `leave`.
   */
  connect(options: ConnectOptions): Promise<void> {
    if (this.#state !== 'idle' && this.#state !== 'ended') throw new Error(`connect while ${this.#state}`);
    this.#options = options;
    this.#route = new Route(options);
    this.#metadata = options.metadata ?? null;
    this.#permissions = null;
    this.#refusals = 0;
    this.#everConnected = false;
    this.#stopWatching = watchForWakeUp({
      suspect: () => this.#probe(limits.SUSPECT_PROBE_MS),
      shown: () => this.#state === 'reconnecting' && this.#probe(),
    });
    this.#setState('connecting');
    return new Promise((resolve, reject) => {
      this.#started = { resolve, reject };
      this.#open();
    });
  }

  /** Leaves the room. Published media keeps running, for a preview or another call. */
  leave(): void {
    if (this.#state === 'idle' || this.#state === 'ended') return;
    this.#socket?.send(encodeEvent('disconnect'));
    this.#end(new RoomClientError('LEFT', 'the client left the room'));
  }

  /**
   * Changes the metadata that others see of this participant. Servers show up to 64 KiB of JSON.
   * @throws RoomClientError FAILED for 1 MiB or more, which would end the call
   */
  setMetadata(metadata: unknown): void {
    mustBeSendable(metadata);
    this.#metadata = metadata ?? null;
    this.#socket?.send(encodeEvent('updateEndpointMetadata', { metadata: this.#metadata }));
  }

  /**
   * Publishes media. Resolves when the server has accepted it; rejects with `PUBLISH_REFUSED` if it did not. A track
   * published while the connection is lost is accepted after the reconnection.
   * @throws RoomClientError FAILED for metadata of 1 MiB or more, which would end the call
   */
  async publish(media: MediaStreamTrack, options: PublishOptions = {}): Promise<LocalTrack> {
    mustBeSendable(options.metadata);
    const track = new LocalTrack(media, options, {
      sendTrackEvent: (event, data) => this.#socket?.send(encodeEvent(event, data)),
      removeTrack: (one) => Promise.resolve(this.#forget(one)),
      localTrackChanged: () => this.#setLocalTracks([...this.#localTracks]),
    });
    this.#setLocalTracks([...this.#localTracks, track]);
    if (this.#state === 'connected') {
      await this.#media?.publish(track).catch((error: RoomClientError) => {
        // A lost connection is not a refusal: the track is published on the next one.
        if (!this.#localTracks.includes(track) || error.code === 'PUBLISH_REFUSED') throw error;
      });
    }
    return track;
  }

  /**
   * Sends at most 64 KiB of text or bytes to the other clients in the conversation `label`. Resolves when the browser
   * has accepted them, after a reconnection if necessary. A label keeps the reliability of its first message or
   * `openData`.
   * @throws RoomClientError DATA_REFUSED; LEFT when the call ends first.
   */
  async sendData(label: string, data: string | Uint8Array, options: SendOptions = {}): Promise<void> {
    this.#requireData();
    return this.#conversations.send(label, data, options);
  }

  /**
   * Joins a conversation and receives its messages as `data` events. Resolves once receiving has started;
   * earlier messages are lost. A client that calls neither this nor `sendData` has no data channels.
   * @throws RoomClientError DATA_REFUSED; LEFT when the call ends first.
   */
  async openData(label: string, { reliable }: Pick<SendOptions, 'reliable'> = {}): Promise<void> {
    this.#requireData();
    return this.#conversations.open(label, reliable);
  }

  /** Returns another participant's track, or undefined. */
  track(id: string): RemoteTrack<TrackMetadata> | undefined {
    return this.#remote.find(id) as RemoteTrack<TrackMetadata> | undefined;
  }

  /**
   * Adapts a track's quality to the size of the element that shows it, until the returned function is called. If
   * several elements show it, the largest counts. A picture that no element shows on screen is paused. An element with
   * `autoplay` is started, as `play` does.
   */
  watch(trackId: string, element: HTMLElement): () => void {
    return this.#viewing.watch(trackId, element);
  }

  /** Plays an element's sound until the returned function is called. `audioBlocked` fires if the browser refuses. */
  play(element: HTMLMediaElement): () => void {
    return this.#playback.start(element);
  }

  /** Chooses the simulcast variant that the server aims at. */
  setVariant(trackId: string, variant: Variant): void {
    this.#viewing.setVariant(trackId, variant);
  }

  /** Stops or resumes another participant's track on its way to this client. Watched elements do so by themselves. */
  setPaused(trackId: string, paused: boolean): void {
    this.#viewing.setPaused(trackId, paused);
  }

  /** Returns the counters of each track sent or received. */
  async stats(): Promise<CallStats> {
    const media = this.#media;
    return readStats(await media?.stats, (mid) => media!.trackOf(mid));
  }

  #open(): void {
    try {
      this.#openSession();
    } catch (error) {
      if (!this.#route.isKnown) return this.#closed(0, '');
      // No server was contacted: the address is malformed or forbidden, or the browser is out of WebRTC connections.
      this.#end(unreachable(`the browser opens no connection to ${this.#route.url}: ${error}`));
    }
  }

  #openSession(): void {
    this.#socket = new PeerSocket(this.#route, {
      authenticated: () => this.#socket?.send(encodeEvent('connect', { metadata: this.#metadata, features: FEATURES })),
      received: (message) => this.#received(message),
      closed: (code, reason) => this.#closed(code, reason),
    });
    // Open the socket first: a page's first connection takes tens of milliseconds, during which the network proceeds.
    this.#media = new MediaConnection(
      {
        send: (type, data) => this.#socket?.send(encodeCustom(type, data)),
        received: (trackId, media) => this.#apply(this.#remote.setMedia(trackId, media)),
        undecodable: (trackId, problem) => this.#apply(this.#remote.setUnavailable(trackId, problem)),
        refused: (track) => {
          this.#forget(track);
          this.emit('unpublished', track);
        },
        channelOpened: (channel) => this.#conversations.listen(channel),
        lost: () => this.#probe(),
        mediaChanged: (state) => this.#setMedia(state),
      },
      () => ({ selfId: this.#selfId, features: this.#features }),
      this.#options?.encryption,
    );
  }

  /** Follows the room to another node. The code for that is loaded when it is needed. */
  #follow(url = this.#route.url): void {
    const call = {
      session: [this.#socket as PeerSocket, this.#media as MediaConnection, this.#features] as const,
      remote: this.#remote,
      conversations: this.#conversations,
      viewing: this.#viewing,
      options: () => ({ ...this.#options, token: this.#route.token, url, metadata: this.#metadata }),
      localTracks: () => this.#localTracks,
      use: (...session: CallSession) => void ([this.#socket, this.#media, this.#features] = session),
      apply: (changes: readonly RemoteChange[]) => this.#apply(changes),
    };
    // Without it, the server ends the connection soon, and the client reconnects.
    const loaded = import('./moving.js').then(({ follow }) => this.#socket === call.session[0] && follow(call));
    loaded.catch(() => undefined);
  }

  #received(message: Received): void {
    clearTimeout(this.#probeTimer);
    this.#probeTimer = undefined;
    switch (message.type) {
      case 'offerData':
        return this.#media?.offerData(message.data);
      case 'sdpAnswer':
        this.#media?.answer(message.data.sdp, message.data.midToTrackId);
        for (const trackId of Object.values(message.data.midToTrackId)) this.#viewing.repeat(trackId);
        return undefined;
      case 'candidate':
        return this.#media?.candidate(message.data);
      case 'roomMoved':
        return this.#follow(message.data.url);
      case 'standby':
        return this.#route.nameStandby(message.data.url);
      case 'bandwidthEstimation':
        return this.emit('bandwidth', message.data.estimation);
      case 'permissions':
        this.#permissions = message.data;
        this.emit('changed');
        return this.emit('permissionsChanged', message.data);
      case 'roomMessage':
        return this.emit('message', message.data.topic, message.data.data);
      case 'dataChannelClosed':
        this.#conversations.closed(message.data.label, message.data.reason);
        return this.emit('dataClosed', message.data.label, message.data.reason);
      case 'trackMutedByServer':
        return this.#localTracks.find(({ id }) => id === message.data.trackId)?.setMutedByServer(message.data.muted);
      case 'fallbackWanted':
        return this.#media?.fallbackWanted(message.data);
      case 'connected': {
        const { id, features = [] } = message.data;
        this.#features = features;
        this.#apply(this.#remote.apply(message));
        // A listener may have called `leave`.
        return this.#state === 'ended' ? undefined : this.#connected(id);
      }
      default:
        return this.#apply(this.#remote.apply(message));
    }
  }

  #connected(id: string): void {
    this.#selfId = id;
    this.#route.arrived();
    clearTimeout(this.#outageTimer);
    this.#attempt = 0;
    this.#connectedAt = Date.now();
    this.#everConnected = true;
    for (const track of this.#localTracks) {
      // A refusal is reported by an event; another lost connection leads here again.
      this.#media?.publish(track).catch(() => undefined);
    }
    this.#setState('connected');
    if (this.#features.includes('data')) this.#conversations.connected();
    else this.#conversations.clear(noData());
    this.emit('connected');
    this.#started?.resolve();
    this.#started = undefined;
  }

  #closed(code: number, reason: string): void {
    const settled = Date.now() - this.#connectedAt >= (code === RESTART ? limits.RESTARTED_MS : limits.SETTLED_MS);
    if (this.#state === 'connected' && settled) this.#refusals = 0;
    const error = this.#route.isFinal ? errorOfClose(code, reason, this.#everConnected) : undefined;
    if (error !== undefined && code === TOO_BIG) return this.#end(error);
    // The server may not have noticed yet that the previous connection is dead.
    const stale =
      error?.code === 'ALREADY_CONNECTED' && this.#everConnected && this.#outageMs < limits.STALE_SESSION_MS;
    if (error !== undefined && !stale) return this.#seatLost(error);
    if (!this.#everConnected) {
      return this.#end(unreachable(`no answer from ${this.#route.url}; is the server up?`));
    }
    if (!stale && this.#outageMs >= limits.UNREACHABLE_MS && this.#options?.renew !== undefined) {
      this.#route.lost = unreachable(`no answer from ${this.#route.url} in ${this.#attempt} attempts`);
    }
    if (!this.#route.closed(code, this.#state === 'connected')) this.#attempt -= 1;
    if (this.#state !== 'connected' || settled) return this.#reconnect();
    return this.#refusedAgain(unreachable('connections keep failing'));
  }

  #seatLost(reason: RoomClientError): void {
    if (!this.#everConnected || this.#options?.renew === undefined) return this.#end(reason);
    this.#route.lost = reason;
    return this.#refusedAgain(reason);
  }

  /** Counts a seat or connection that did not last as a failed attempt. After too many of them, ends the call. */
  #refusedAgain(reason: RoomClientError): void {
    const { maxSeats = limits.DEFAULT_MAX_SEATS } = this.#options?.reconnect ?? {};
    if (this.#refusals >= maxSeats) return this.#end(reason);
    this.#attempt = this.#refusals;
    this.#refusals += 1;
    return this.#reconnect();
  }

  #reconnect(): void {
    this.#closeSession();
    // Hurry for people waiting for an outage to end, but a seat that does not last is not an outage.
    const outageMs = this.#refusals > 1 && this.#state === 'connected' ? Infinity : this.#outageMs;
    const { isExpected } = this.#route;
    const delayMs = reconnectDelayMs(this.#attempt, { ...this.#options?.reconnect, outageMs, isExpected });
    if (delayMs === undefined) {
      return this.#end(unreachable(`no answer from ${this.#route.url} in ${this.#attempt} attempts`));
    }
    this.#attempt += 1;
    if (this.#state !== 'reconnecting') this.#beginOutage();
    this.#retryTimer = setTimeout(() => this.#return(), delayMs);
    this.#setState('reconnecting');
    return this.emit('reconnecting', this.#attempt, delayMs);
  }

  #beginOutage(): void {
    this.#outageSince = Date.now();
    const { maxOutageMs } = this.#options?.reconnect ?? {};
    if (maxOutageMs === undefined) return;
    // Its own timer also ends the wait for an answer.
    const lost = unreachable(`the connection was lost for ${maxOutageMs / 1_000} s`);
    this.#outageTimer = setTimeout(() => this.#end(lost), maxOutageMs);
  }

  /** Time since the connection was lost, in milliseconds; 0 while connected. */
  get #outageMs(): number {
    return this.#state === 'reconnecting' ? Date.now() - this.#outageSince : 0;
  }

  /** Opens the next session, with another seat if the current one is lost. */
  #return(): void {
    const reason = this.#route.lost;
    const { renew } = this.#options ?? {};
    if (reason === undefined || renew === undefined) return this.#open();
    // Much may happen before the backend answers: `leave`, another `connect`, or the network returning.
    const isCurrent = (): boolean => this.#route.lost === reason && this.#state === 'reconnecting';
    new Promise<Seat | null>((resolve) => resolve(renew(reason))).then(
      (seat) => {
        if (!isCurrent()) return;
        if (seat === null) return this.#end(reason);
        this.#route = new Route(seat);
        this.#open();
      },
      () => {
        if (isCurrent()) this.#reconnect();
        // If the backend is unreachable too, the network is more likely lost than the seat.
        if (reason.code === 'UNREACHABLE') this.#route.lost = undefined;
      },
    );
  }

  /** Tests whether the server is alive: requests a new path, and treats a missing answer as a dead socket. */
  #probe(answerMs = limits.PROBE_MS): void {
    if (this.#state === 'reconnecting') {
      // A refused seat is being renewed, or will be after the pause.
      if (this.#route.lost !== undefined && this.#route.lost.code !== 'UNREACHABLE') return undefined;
      this.#route.lost = undefined;
      this.#outageSince = Date.now();
      clearTimeout(this.#retryTimer);
      this.#closeSession();
      return this.#open();
    }
    if (this.#state !== 'connected' || this.#probeTimer !== undefined) return undefined;
    this.#probeTimer = setTimeout(() => this.#socket?.drop(), answerMs);
    return this.#media?.restart();
  }

  #requireData(): void {
    if (this.#state === 'idle' || this.#state === 'ended') throw new RoomClientError('DATA_REFUSED', 'not in a room');
    if (this.#everConnected && !this.#features.includes('data')) throw noData();
  }

  #openChannel(label: string, options: RTCDataChannelInit): RTCDataChannel | undefined {
    // Requests on a socket that is not open yet are lost.
    if (this.#state !== 'connected' || !this.#features.includes('data')) return undefined;
    const channel = this.#media?.openChannel(label, options);
    if (channel !== undefined) this.#conversations.listen(channel);
    return channel;
  }

  #apply(changes: readonly RemoteChange[]): void {
    for (const change of changes) {
      if (change.type === 'trackRemoved') this.#viewing.forget(change.track.id);
      if ('peer' in change) this.emit(change.type, change.peer as RemotePeer<PeerMetadata, TrackMetadata>);
      else this.emit(change.type, change.track as RemoteTrack<TrackMetadata>);
    }
    if (changes.length > 0) this.emit('changed');
  }

  #forget(track: LocalTrack): void {
    this.#media?.unpublish(track);
    this.#setLocalTracks(this.#localTracks.filter((one) => one !== track));
  }

  /** Everything ends before a listener is called: a listener may leave or start the next call. */
  #end(reason: RoomClientError): void {
    this.#stopWatching?.();
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#outageTimer);
    this.#closeSession();
    this.#conversations.clear(new RoomClientError('LEFT', `not sent: ${reason.message}`));
    this.#started?.reject(reason);
    this.#started = undefined;
    this.#state = 'ended';
    this.#localTracks = [];
    this.#apply(this.#remote.clear());
    this.emit('changed');
    this.emit('ended', reason);
  }

  #closeSession(): void {
    clearTimeout(this.#probeTimer);
    this.#probeTimer = undefined;
    this.#socket?.close();
    this.#conversations.disconnected();
    this.#media?.close();
    // Calls wait for the next session: a closed connection throws.
    this.#media = undefined;
    this.#setMedia(IDLE);
  }

  #setLocalTracks(tracks: readonly LocalTrack[]): void {
    this.#localTracks = tracks;
    this.emit('changed');
  }

  #setMedia(state: MediaState): void {
    if (this.#mediaState === state) return;
    this.#mediaState = state;
    this.emit('changed');
    this.emit('mediaStateChanged', state);
  }

  #setState(state: ClientState): void {
    this.#state = state;
    this.emit('changed');
  }
}
