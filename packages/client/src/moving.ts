// How a client follows its room to another node (docs/reference/moving.md, "Clients that follow"). Loaded when a room
// moves for the first time.
import type { ConnectOptions } from './client-types.js';
import type { ConnectionHooks, MediaConnection } from './connection.js';
import type { Conversations } from './data.js';
import { CONNECTION_LOST, errorOfClose } from './errors.js';
import type { LocalTrack } from './local-track.js';
import { IDLE, type MediaState } from './media-state.js';
import { type RemoteChange, type RemotePeer, RemotePeers, type RemoteTrack } from './remote.js';
import {
  encodeCustom,
  encodeEvent,
  FEATURES,
  type Received,
  type ServerEvent,
  type WireEndpoint,
} from './signaling.js';
import type { PeerSocket, SocketHooks } from './socket.js';
import { readStats } from './stats.js';
import type { Viewing } from './viewing.js';

/** How long the next session may take to show what the first one does. */
const MOVE_MS = 5_000;
/** Pause between two looks at the next session. */
const LOOK_MS = 50;
/** How long messages wait for those that were sent over the former session to arrive. */
const HOLD_MS = 1_000;
/** How long others may still send over the former session, if its server does not end it before. */
const READ_MS = 10_000;

/** The parts of a websocket and of a connection that a call uses. Two of each can look like one. */
export type CallSocket = Pick<PeerSocket, 'send' | 'drop' | 'close'>;
export type CallMedia = Omit<MediaConnection, 'hooks' | 'openChannel'> & {
  openChannel(label: string, options: RTCDataChannelInit): RTCDataChannel | undefined;
};

/** Websocket and media of a session, and the additions to the protocol that the server supports too. */
export type CallSession = [socket: CallSocket, media: CallMedia, features: readonly string[]];

/** What a move needs of a call. */
export interface MovingCall {
  /** The present session. */
  readonly session: readonly [PeerSocket, MediaConnection, readonly string[]];
  readonly remote: RemotePeers;
  readonly conversations: Conversations;
  readonly viewing: Viewing;
  /** Where and as whom to connect. */
  options(): ConnectOptions;
  localTracks(): readonly LocalTrack[];
  /** Replaces the session of the call. */
  use(...session: CallSession): void;
  apply(changes: readonly RemoteChange[]): void;
}

/**
 * Opens a second session beside that of the call, and lets the call show it once it shows as much. The first one goes
 * on sending until all others have their second one.
 */
export function follow(call: MovingCall): void {
  try {
    new Move(call).begin();
  } catch {
    // The browser opens no second connection, and the server ends the first one soon.
  }
}

class Move {
  readonly #call: MovingCall;
  /** What the call does with what its session reports. */
  readonly #hooks: readonly [SocketHooks, ConnectionHooks];
  readonly #remote = new RemotePeers();
  /** Changes of the state of tracks over the next session, in order. */
  readonly #states: ServerEvent[] = [];
  /** Data channels of the next session by label. */
  readonly #ahead = new Map<string, RTCDataChannel>();
  readonly #socket: PeerSocket;
  readonly #media: MediaConnection;
  /** Both sessions as one. */
  readonly #bothSockets: CallSocket;
  readonly #bothMedia: CallMedia;
  #features: readonly string[] | undefined;
  #selfId = '';
  #mediaState: MediaState = IDLE;
  #isPublished = false;
  #isShown = false;
  /** Where messages go: over the first session until nobody needs it, and after a pause over the next one. */
  #sends: 'first' | 'nowhere' | 'next' = 'first';
  #isOver = false;
  #hold: ReturnType<typeof setTimeout> | undefined;

  constructor(call: MovingCall) {
    this.#call = call;
    const [socket, media] = call.session;
    this.#hooks = [socket.hooks!, media.hooks];
    // This module's own copies of these classes would have errors of their own.
    const [Socket, Media] = [socket.constructor as typeof PeerSocket, media.constructor as typeof MediaConnection];
    const options = call.options();
    this.#socket = new Socket(options, {
      authenticated: () =>
        this.#socket.send(encodeEvent('connect', { metadata: call.options().metadata, features: FEATURES })),
      received: (message) => this.#received(message),
      closed: (code, reason) => this.#fail(code, reason),
    });
    try {
      this.#media = new Media(
        {
          ...media.hooks,
          send: (type, data) => this.#socket.send(encodeCustom(type, data)),
          received: (trackId, media) => void this.#remote.setMedia(trackId, media),
          undecodable: (trackId, problem) => void this.#remote.setUnavailable(trackId, problem),
          lost: () => undefined,
          mediaChanged: (state) => (this.#mediaState = state),
        },
        () => ({ selfId: this.#selfId, features: this.#features ?? [] }),
        options.encryption,
      );
    } catch (error) {
      this.#socket.close();
      throw error;
    }
    this.#bothSockets = this.#joinSockets();
    this.#bothMedia = this.#joinMedia();
  }

  begin(): void {
    const [socket, media, features] = this.#call.session;
    const [socketHooks, mediaHooks] = this.#hooks;
    socket.hooks = { ...socketHooks, closed: (code, reason) => this.#formerClosed(code, reason) };
    media.hooks = { ...mediaHooks, send: (type, data) => socket.send(encodeCustom(type, data)) };
    this.#call.use(this.#bothSockets, this.#bothMedia, features);
    void this.#untilShown();
  }

  #joinSockets(): CallSocket {
    const [socket] = this.#call.session;
    return {
      send: (frame) => {
        socket.send(frame);
        // Before it has joined, it would be told of tracks that it does not know.
        if (this.#features !== undefined) this.#socket.send(frame);
      },
      drop: () => (this.#isShown ? this.#socket : socket).drop(),
      close: () => {
        this.#end();
        socket.close();
        this.#socket.close();
      },
    };
  }

  #joinMedia(): CallMedia {
    const [, media] = this.#call.session;
    const shown = (): MediaConnection => (this.#isShown ? this.#media : media);
    return {
      get stats() {
        return shown().stats;
      },
      trackOf: (mid) => shown().trackOf(mid),
      publish: (track) => {
        // One that has not joined publishes all tracks then.
        if (this.#features === undefined) return media.publish(track);
        const [one, other] = this.#isShown ? [this.#media, media] : [media, this.#media];
        other.publish(track).catch(() => undefined);
        return one.publish(track);
      },
      unpublish: (track) => {
        media.unpublish(track);
        this.#media.unpublish(track);
      },
      // Whoever has followed reads both, and whoever has not only the first one.
      openChannel: (label, options) => {
        if (this.#sends === 'nowhere') return undefined;
        return (this.#sends === 'first' ? media : this.#media).openChannel(label, options);
      },
      restart: () => shown().restart(),
      offerData: (data) => shown().offerData(data),
      answer: (sdp, midToTrackId) => shown().answer(sdp, midToTrackId),
      candidate: (candidate) => shown().candidate(candidate),
      fallbackWanted: (data) => shown().fallbackWanted(data),
      close: () => {
        media.close();
        this.#media.close();
      },
    };
  }

  /** Handles what the next session receives before it is shown. */
  #received(message: Received): void {
    const { viewing } = this.#call;
    switch (message.type) {
      case 'offerData':
        return this.#media.offerData(message.data);
      case 'sdpAnswer':
        this.#media.answer(message.data.sdp, message.data.midToTrackId);
        for (const trackId of Object.values(message.data.midToTrackId)) viewing.repeat(trackId);
        return undefined;
      case 'candidate':
        return this.#media.candidate(message.data);
      case 'fallbackWanted':
        return this.#media.fallbackWanted(message.data);
      case 'connected':
        this.#selfId = message.data.id;
        this.#features = message.data.features ?? [];
        this.#remote.apply(message);
        return this.#joined();
      case 'permissions':
      case 'standby':
      case 'roomMessage':
      case 'trackMutedByServer':
        return this.#hooks[0].received(message);
      default:
        if (message.data !== undefined && 'trackId' in message.data) this.#states.push(message);
        return void this.#remote.apply(message);
    }
  }

  #joined(): void {
    const { conversations, localTracks } = this.#call;
    if (this.#features?.includes('data') === true)
      for (const [label, { options }] of conversations.byLabel) this.#ahead.set(label, this.#open(label, options));
    const published = localTracks().map((track) => this.#media.publish(track).catch(() => undefined));
    void Promise.all(published).then(() => (this.#isPublished = true));
  }

  #open(label: string, options: RTCDataChannelInit): RTCDataChannel {
    const channel = this.#media.openChannel(label, options);
    this.#call.conversations.listen(channel);
    return channel;
  }

  async #untilShown(): Promise<void> {
    const until = Date.now() + MOVE_MS;
    do await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    while (!this.#isOver && !this.#isShown && Date.now() < until && !(await this.#isReady()));
    if (this.#isOver || this.#isShown) return;
    if (this.#features === undefined) this.#fail(CONNECTION_LOST, '');
    else this.#show();
  }

  /** Returns whether the next session sends what this client sends, and shows every picture that is shown now. */
  async #isReady(): Promise<boolean> {
    const hasChannels = [...this.#ahead.values()].every(({ readyState }) => readyState === 'open');
    if (!this.#isPublished || !hasChannels || this.#mediaState.state === 'connecting') return false;
    const media = this.#media;
    const { tracks } = readStats(await media.stats, (mid) => media.trackOf(mid));
    const seen = new Set(tracks.filter(({ width }) => width > 0).map(({ trackId }) => trackId));
    const isSeen = (track: RemoteTrack): boolean => seen.has(track.id) || !this.#isVisible(track);
    return this.#call.remote.list.every(
      (peer) =>
        this.#remote.list.some(({ id }) => id === peer.id) &&
        peer.tracks.every((track) => this.#remote.find(track.id) !== undefined && isSeen(track)),
    );
  }

  #isVisible({ id, kind, muted, stalled, unavailable, media }: RemoteTrack): boolean {
    const isHidden = muted || stalled || unavailable !== null || media === null;
    return kind === 'video' && !isHidden && !this.#call.viewing.paused.has(id);
  }

  /** Shows the next session instead of the first one. */
  #show(): void {
    const { session, remote } = this.#call;
    const [socket, media] = session;
    const [socketHooks, mediaHooks] = this.#hooks;
    this.#isShown = true;
    socket.hooks = { ...socket.hooks!, received: (message) => this.#formerReceived(message) };
    media.hooks = { ...media.hooks, received() {}, undecodable() {}, refused() {}, lost() {}, mediaChanged() {} };
    this.#socket.hooks = {
      ...socketHooks,
      received: (message) => {
        // The room moves again.
        if (message.type === 'roomMoved') this.#endFormer();
        socketHooks.received(message);
      },
    };
    this.#media.hooks = { ...mediaHooks, send: (type, data) => this.#socket.send(encodeCustom(type, data)) };
    socket.send(encodeCustom('moved'));
    this.#call.use(this.#bothSockets, this.#bothMedia, this.#features ?? []);
    mediaHooks.mediaChanged(this.#mediaState);
    const next = this.#remote.list;
    const otherEndpoints = next.map(describe);
    const tracks = next.flatMap((peer) => peer.tracks);
    this.#call.apply([
      ...remote.apply({ type: 'connected', data: { id: this.#selfId, otherEndpoints } }),
      ...tracks.flatMap(({ id, media: received }) => (received === null ? [] : remote.setMedia(id, received))),
      ...this.#states.flatMap((event) => remote.apply(event)),
    ]);
  }

  #formerReceived(message: Received): void {
    const { session, conversations } = this.#call;
    const [, media] = session;
    if (message.type === 'offerData') media.offerData(message.data);
    if (message.type === 'sdpAnswer') media.answer(message.data.sdp, message.data.midToTrackId);
    if (message.type === 'candidate') media.candidate(message.data);
    if (message.type === 'fallbackWanted') media.fallbackWanted(message.data);
    if (message.type !== 'othersMoved' || this.#sends !== 'first') return;
    conversations.disconnected();
    this.#sends = 'nowhere';
    const [end, ms] = conversations.byLabel.size > 0 ? [() => this.#sendNext(), HOLD_MS] : [() => this.#endFormer(), 0];
    this.#hold = setTimeout(end, ms);
  }

  /** Sends over the next session from now on. Others may take longer, so the former one is read until it ends. */
  #sendNext(): void {
    const [socket] = this.#call.session;
    this.#continue();
    socket.send(encodeCustom('moved'));
    this.#hold = setTimeout(() => this.#endFormer(), READ_MS);
  }

  #continue(): void {
    if (this.#sends === 'next') return;
    this.#sends = 'next';
    this.#call.conversations.connected((label, options) => this.#ahead.get(label) ?? this.#open(label, options));
  }

  #formerClosed(code: number, reason: string): void {
    const isFinal = errorOfClose(code, reason, true) !== undefined;
    // The server has waited long enough, or is gone.
    if (!this.#isShown && this.#isPublished && !isFinal) this.#show();
    if (this.#isShown) return this.#endFormer();
    return this.#fail(code, reason);
  }

  /** The next session alone is that of the call from now on. */
  #endFormer(): void {
    if (this.#isOver) return;
    const [socket, media] = this.#call.session;
    this.#end();
    socket.close();
    media.close();
    [this.#socket.hooks, this.#media.hooks] = this.#hooks;
    this.#call.use(this.#socket, this.#media, this.#features ?? []);
    this.#continue();
  }

  /** The call starts over, as after any lost connection. */
  #fail(code: number, reason: string): void {
    this.#hooks[0].closed(code, reason);
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#hold);
  }
}

/** Describes a peer as a server does. */
function describe({ id, type, metadata, tracks }: RemotePeer): WireEndpoint {
  return {
    id,
    type,
    metadata,
    tracks: Object.fromEntries(
      tracks.map(({ id: trackId, metadata: described, kind, encrypted, variants }) => [
        trackId,
        {
          metadata: described,
          ...(kind === null ? {} : { kind }),
          encrypted,
          simulcastConfig: { enabled: variants.length > 0, activeEncodings: variants },
        },
      ]),
    ),
  };
}
