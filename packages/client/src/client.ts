import { type ReconnectOptions, reconnectDelayMs } from './backoff.js';
import { MediaConnection } from './connection.js';
import { Conversations, type DataMessage, type SendOptions } from './data.js';
import { Emitter } from './emitter.js';
import { mustBeSendable, RoomClientError, errorOfClose, TOO_BIG } from './errors.js';
import { LocalTrack, type PublishOptions } from './local-track.js';
import { type RemoteChange, type RemotePeer, RemotePeers, type RemoteTrack } from './remote.js';
import { encodeCustom, encodeEvent, type Received, type Variant } from './signaling.js';
import { PeerSocket } from './socket.js';
import { readStats, type CallStats } from './stats.js';
import { Viewing } from './viewing.js';
import { watchForWakeUp } from './wake-up.js';

/** `reconnecting`: the peers and their last pictures stay unchanged. */
export type ClientState = 'idle' | 'connecting' | 'connected' | 'reconnecting' | 'ended';

/** A place in a room, as the backend receives it for a new peer. */
export interface Seat {
  /** The peer's `peer_websocket_url` or `host:port`. Without `ws://` or `wss://`, the scheme follows the page. */
  readonly url: string;
  readonly token: string;
}

/** Options of `connect`. */
export interface ConnectOptions extends Seat {
  /**
   * Asks the backend for another seat when the current one is lost: its node restarted or is unreachable, its token has
   * expired, or the peer or the room was removed. Null ends the call for `reason`, as do `maxSeats` seats in a row that
   * do not last. A rejection is retried.
   */
  readonly renew?: (reason: RoomClientError) => Promise<Seat | null> | Seat | null;
  /** Any JSON, shown to the other participants. */
  readonly metadata?: unknown;
  readonly reconnect?: ReconnectOptions;
}

/** Events of `RoomClient` with their arguments. */
export interface ClientEvents {
  /** `state`, `peers` or `localTracks` changed. */
  changed: [];
  connected: [];
  /** The connection was lost. The next attempt follows in `delayMs`. */
  reconnecting: [attempt: number, delayMs: number];
  /** The call is over because the client left or the server ended it. */
  ended: [reason: RoomClientError];
  peerJoined: [peer: RemotePeer];
  peerUpdated: [peer: RemotePeer];
  peerLeft: [peer: RemotePeer];
  trackAdded: [track: RemoteTrack];
  /** The track's `media` is available, for the first time or after a reconnection. */
  trackReady: [track: RemoteTrack];
  trackUpdated: [track: RemoteTrack];
  trackRemoved: [track: RemoteTrack];
  /** The server does not or no longer accepts this track, because of its codec or a withdrawn permission. */
  unpublished: [track: LocalTrack];
  /** A message from the backend to this client. */
  message: [topic: string, data: unknown];
  /** A message from another client. */
  data: [message: DataMessage];
  /** The server closed a conversation and says why (docs/reference/data-channels.md). The next message reopens it. */
  dataClosed: [label: string, reason: string];
  /** The server's estimate of what this client can receive, in bits per second. */
  bandwidth: [bps: number];
}

/** Time limit for the answer to a request that proves that the server is alive. */
const PROBE_MS = 3_000;
/** The same limit after sleep or a network change, when the socket is most likely dead. */
const SUSPECT_PROBE_MS = 1_500;
/** A server that has not noticed the old connection's death refuses the new one for this long. */
const STALE_SESSION_MS = 15_000;
/** A seat held for this long was good, whatever ends it. */
const SETTLED_MS = 10_000;
const MAX_SEATS = 20;
/** A node that does not answer for this long counts as gone, so that the client asks for a seat on another node. */
const UNREACHABLE_MS = 3_000;
/** Protocol additions that this client uses if the server knows them (docs/reference/peer-signaling.md). */
const FEATURES = ['pause', 'data'];

const noData = (): RoomClientError => new RoomClientError('DATA_REFUSED', 'this server has no data channels');

/** One participant in one room. */
export class RoomClient extends Emitter<ClientEvents> {
  readonly #remote = new RemotePeers();
  readonly #viewing = new Viewing({
    track: (id) => this.track(id),
    pauses: () => this.#features.includes('pause'),
    send: (type, data) => this.#socket?.send(encodeCustom(type, data)),
  });
  readonly #conversations = new Conversations({
    open: (label, options) => this.#openChannel(label, options),
    received: (message) => this.emit('data', message),
  });
  #state: ClientState = 'idle';
  #options: ConnectOptions | undefined;
  #seat: Seat = { url: '', token: '' };
  /** Why the current seat is lost. */
  #lost: RoomClientError | undefined;
  #metadata: unknown = null;
  /** Protocol additions that the server supports too. */
  #features: readonly string[] = [];
  #selfId = '';
  #localTracks: readonly LocalTrack[] = [];
  #socket: PeerSocket | undefined;
  #media: MediaConnection | undefined;
  #attempt = 0;
  /** Time when the connection was lost or the network last gave a sign, by `Date.now`. */
  #outageSince = 0;
  /** Successive seats refused or lost at once. Their number lengthens the pauses, since the server does answer. */
  #refusals = 0;
  /** Time when the current connection was made, by `Date.now`. */
  #connectedAt = 0;
  #everConnected = false;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #probeTimer: ReturnType<typeof setTimeout> | undefined;
  #stopWatching: (() => void) | undefined;
  #started: { resolve: () => void; reject: (error: RoomClientError) => void } | undefined;

  get state(): ClientState {
    return this.#state;
  }

  /** Id of this participant; empty before the first connection. */
  get id(): string {
    return this.#selfId;
  }

  /** The other participants. The array stays the same until something changes. */
  get peers(): readonly RemotePeer[] {
    return this.#remote.list;
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
    this.#seat = options;
    this.#lost = undefined;
    this.#metadata = options.metadata ?? null;
    this.#attempt = 0;
    this.#refusals = 0;
    this.#everConnected = false;
    this.#stopWatching = watchForWakeUp({
      suspect: () => this.#probe(SUSPECT_PROBE_MS),
      shown: () => {
        if (this.#state === 'reconnecting') this.#probe();
      },
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
   */
  async publish(media: MediaStreamTrack, options: PublishOptions = {}): Promise<LocalTrack> {
    const track = new LocalTrack(media, options, {
      sendTrackEvent: (event, data) => this.#socket?.send(encodeEvent(event, data)),
      removeTrack: (one) => Promise.resolve(this.#forget(one)),
      localTrackChanged: () => this.#setLocalTracks([...this.#localTracks]),
    });
    this.#setLocalTracks([...this.#localTracks, track]);
    if (this.#state === 'connected') {
      await this.#media?.publish(track).catch((error: unknown) => {
        // A lost connection is not a refusal: the track is published on the next one.
        if (!this.#localTracks.includes(track) || isRefusal(error)) throw error;
      });
    }
    return track;
  }

  /**
   * Sends at most 64 KiB of text or bytes to the other clients in the conversation `label`. Resolves when the browser
   * has taken them, after a reconnection if necessary. A label keeps the reliability of its first message or
   * `openData`.
   * @throws RoomClientError DATA_REFUSED; LEFT when the call ends first.
   */
  async sendData(label: string, data: string | Uint8Array, options: SendOptions = {}): Promise<void> {
    this.#requireData();
    return this.#conversations.send(label, data, options);
  }

  /**
   * Joins a conversation and receives its messages as `data` events. Resolves when that has started: earlier messages
   * do not arrive. A client that calls neither this nor `sendData` has no data channels.
   * @throws RoomClientError DATA_REFUSED; LEFT when the call ends first.
   */
  async openData(label: string, { reliable }: Pick<SendOptions, 'reliable'> = {}): Promise<void> {
    this.#requireData();
    return this.#conversations.open(label, reliable);
  }

  /** Returns another participant's track, or undefined. */
  track(id: string): RemoteTrack | undefined {
    return this.#remote.find(id);
  }

  /**
   * Adapts a track's quality to the size of the element that shows it, until the returned function is called. If
   * several elements show it, the largest counts. A picture that no element shows on screen is paused.
   */
  watch(trackId: string, element: HTMLElement): () => void {
    return this.#viewing.watch(trackId, element);
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
    if (media === undefined) return { roundTripMs: null, tracks: [] };
    const local = new Map(this.#localTracks.map((track) => [track.media?.id, track.id]));
    return readStats(await media.stats, { received: (mid) => media.trackOf(mid), sent: (id) => local.get(id) });
  }

  #open(): void {
    try {
      this.#openSession();
    } catch (error) {
      // No server was asked: the address is malformed or forbidden to the page, or the browser has no WebRTC left.
      const reason = error instanceof Error ? error.message : String(error);
      this.#end(new RoomClientError('UNREACHABLE', `the browser opens no connection to ${this.#seat.url}: ${reason}`));
    }
  }

  #openSession(): void {
    const { url, token } = this.#seat;
    this.#socket = new PeerSocket(url, token, {
      authenticated: () => this.#socket?.send(encodeEvent('connect', { metadata: this.#metadata, features: FEATURES })),
      received: (message) => this.#received(message),
      closed: (code, reason) => this.#closed(code, reason),
    });
    // Open the socket first: a page's first connection takes tens of milliseconds, during which the network proceeds.
    this.#media = new MediaConnection(
      {
        send: (type, data) => this.#socket?.send(encodeCustom(type, data)),
        received: (trackId, media) => this.#apply(this.#remote.setMedia(trackId, media)),
        refused: (track) => this.#refused(track),
        channelOpened: (channel) => this.#conversations.listen(channel),
        lost: () => this.#probe(),
      },
      () => this.#selfId,
    );
  }

  #received(message: Received): void {
    clearTimeout(this.#probeTimer);
    this.#probeTimer = undefined;
    switch (message.type) {
      case 'authenticated':
      case 'unknown':
        return undefined;
      case 'offerData':
        return this.#media?.offerData(message.data);
      case 'sdpAnswer':
        this.#media?.answer(message.data.sdp, message.data.midToTrackId);
        for (const trackId of Object.values(message.data.midToTrackId)) this.#viewing.repeat(trackId);
        return undefined;
      case 'candidate':
        return this.#media?.candidate(message.data);
      case 'bandwidthEstimation':
        return this.emit('bandwidth', message.data.estimation);
      case 'roomMessage':
        return this.emit('message', message.data.topic, message.data.data);
      case 'dataChannelClosed': {
        const { label, reason } = message.data;
        this.#conversations.closed(label, reason);
        return this.emit('dataClosed', label, reason);
      }
      case 'trackMutedByServer':
        return this.#localTracks.find(({ id }) => id === message.data.trackId)?.setMutedByServer(message.data.muted);
      case 'connected': {
        const { id, features = [] } = message.data;
        this.#features = features;
        this.#apply(this.#remote.apply(message));
        // A listener may have left.
        return this.#state === 'ended' ? undefined : this.#connected(id);
      }
      default:
        return this.#apply(this.#remote.apply(message));
    }
  }

  #connected(id: string): void {
    this.#selfId = id;
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
    if (this.#state === 'connected' && Date.now() - this.#connectedAt >= SETTLED_MS) this.#refusals = 0;
    const error = errorOfClose(code, reason, this.#everConnected);
    if (error !== undefined && code === TOO_BIG) return this.#end(error);
    // The server may not have noticed yet that the previous connection is dead.
    const stale = error?.code === 'ALREADY_CONNECTED' && this.#everConnected && this.#outageMs < STALE_SESSION_MS;
    if (error !== undefined && !stale) return this.#seatLost(error);
    if (!this.#everConnected) {
      return this.#end(new RoomClientError('UNREACHABLE', `no answer from ${this.#seat.url}; is the server up?`));
    }
    if (!stale && this.#outageMs >= UNREACHABLE_MS && this.#options?.renew !== undefined) {
      this.#lost = new RoomClientError('UNREACHABLE', `no answer from ${this.#seat.url} in ${this.#attempt} attempts`);
    }
    return this.#reconnect();
  }

  #seatLost(reason: RoomClientError): void {
    const { renew, reconnect: { maxSeats = MAX_SEATS } = {} } = this.#options ?? {};
    if (!this.#everConnected || renew === undefined || this.#refusals >= maxSeats) return this.#end(reason);
    this.#lost = reason;
    this.#attempt = this.#refusals;
    this.#refusals += 1;
    return this.#reconnect();
  }

  #reconnect(): void {
    this.#closeSession();
    // Hurry for people waiting for an outage to end, but a seat that does not last is not an outage.
    const outageMs = this.#refusals > 1 && this.#state === 'connected' ? Infinity : this.#outageMs;
    const delayMs = reconnectDelayMs(this.#attempt, { ...this.#options?.reconnect, outageMs });
    if (delayMs === undefined) {
      return this.#end(
        new RoomClientError('UNREACHABLE', `the connection was lost and ${this.#attempt} attempts failed`),
      );
    }
    this.#attempt += 1;
    if (this.#state !== 'reconnecting') this.#outageSince = Date.now();
    this.#retryTimer = setTimeout(() => this.#return(), delayMs);
    this.#setState('reconnecting');
    return this.emit('reconnecting', this.#attempt, delayMs);
  }

  /** Time since the connection was lost, in milliseconds; 0 while connected. */
  get #outageMs(): number {
    return this.#state === 'reconnecting' ? Date.now() - this.#outageSince : 0;
  }

  /** Opens the next session, with another seat if the current one is lost. */
  #return(): void {
    const reason = this.#lost;
    const { renew } = this.#options ?? {};
    if (reason === undefined || renew === undefined) return this.#open();
    // Much may happen before the backend answers: `leave`, another `connect`, a network that is back.
    const isCurrent = (): boolean => this.#lost === reason && this.#state === 'reconnecting';
    new Promise<Seat | null>((resolve) => resolve(renew(reason))).then(
      (seat) => {
        if (!isCurrent()) return;
        if (seat === null) return this.#end(reason);
        this.#seat = seat;
        this.#lost = undefined;
        this.#open();
      },
      () => {
        if (isCurrent()) this.#reconnect();
        // If the backend is unreachable too, the network is more likely lost than the seat.
        if (reason.code === 'UNREACHABLE') this.#lost = undefined;
      },
    );
  }

  /** Tests whether the server is alive: requests a new path, and treats a missing answer as a dead socket. */
  #probe(answerMs = PROBE_MS): void {
    if (this.#state === 'reconnecting') {
      // A refused seat is being renewed, or will be after the pause.
      if (this.#lost !== undefined && this.#lost.code !== 'UNREACHABLE') return undefined;
      this.#lost = undefined;
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
    if (this.#everConnected && !this.#features.includes('data')) {
      throw noData();
    }
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
      if ('peer' in change) {
        this.emit(change.type, change.peer);
        continue;
      }
      const { type, track } = change;
      if (type === 'trackRemoved') this.#viewing.forget(track.id);
      this.emit(type, track);
    }
    if (changes.length > 0) this.emit('changed');
  }

  #refused(track: LocalTrack): void {
    this.#forget(track);
    this.emit('unpublished', track);
  }

  #forget(track: LocalTrack): void {
    this.#media?.unpublish(track);
    this.#setLocalTracks(this.#localTracks.filter((one) => one !== track));
  }

  /** Everything ends before a listener is called: a listener may leave or start the next call. */
  #end(reason: RoomClientError): void {
    this.#stopWatching?.();
    clearTimeout(this.#retryTimer);
    this.#closeSession();
    this.#conversations.clear(new RoomClientError('LEFT', `the call ended before it was sent: ${reason.message}`));
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
    // Calls until the next session wait for it: a closed connection throws.
    this.#media = undefined;
  }

  #setLocalTracks(tracks: readonly LocalTrack[]): void {
    this.#localTracks = tracks;
    this.emit('changed');
  }

  #setState(state: ClientState): void {
    this.#state = state;
    this.emit('changed');
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof RoomClientError && error.code === 'PUBLISH_REFUSED';
}
