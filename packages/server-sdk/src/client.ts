import { created, mixOf, rawQueryOf, recordingOf } from './answers.js';
import type { AddedPeer, Answer, CreatedCheck, CreatedInvitation, CreatedViewer } from './answers.js';
import type { ListedMix, ListedRawRecording } from './answers.js';
import type { Cluster, Draining, DrainOptions, LogLine, LogOptions } from './cluster-types.js';
import type { PeerStats, PlacementDecision, RoomMove } from './cluster-types.js';
import type { CreatedPeer, CreatedRoom, Invitation, Viewer } from './created.js';
import { BloomApiError, BloomConnectionError } from './errors.js';
import type { NotificationStreamOptions, StreamOptions } from './notifications.js';
import { metricsReports, notificationStream } from './notifications.js';
import { reconnecting, type ReconnectingStreamOptions } from './reconnecting.js';
import type {
  Component,
  ComponentOptions,
  ComponentType,
  Fetch,
  FetchedAnswer,
  Health,
  InvitationOptions,
  MixOptions,
  Notification,
  PathCheck,
  Peer,
  PeerChanges,
  PeerOptions,
  RawRecording,
  RawRecordingMix,
  RawRecordingQuery,
  RawRecordingSnapshot,
  Room,
  RoomChanges,
  RoomMessage,
  RoomOptions,
  RoomSnapshot,
  Track,
} from './types.js';
import { UnknownFields } from './unknown-fields.js';

/** Options of `BloomClient`. */
export interface BloomClientOptions {
  /**
   * Base URL of any node in the cluster, for example `https://media.example.com`, or several. A path is kept. The
   * client asks one node, and the next one if it cannot be reached.
   */
  url: string | readonly string[];
  /** The server's `JF_SERVER_API_TOKEN`. Only `acceptInvitation` works without it, and `createCheck` with others. */
  token?: string;
  /** Time limit of one call to one node. Default 5,000 ms. */
  timeoutMs?: number;
  /**
   * Time limit of a call that changes something, if different; `Infinity` for none. After the limit, the change may or
   * may not have been made, and ending a long recording takes a while.
   */
  changeTimeoutMs?: number;
  /** Sends the calls instead of the global `fetch`, such as through a proxy. Streams of notifications do not use it. */
  fetch?: Fetch;
}

/**
 * One server, or a cluster through any of its nodes. Every method rejects with `BloomApiError` if the server refuses,
 * with `BloomConnectionError` if it does not answer, and with `TypeError` for an id that is empty or a dot segment.
 */
export class BloomClient {
  readonly #bases: readonly URL[];
  /** Index of the node being asked. */
  #asked = 0;
  readonly #token: string;
  /** The token's UTF-8 bytes as Latin-1 text, which headers accept. */
  readonly #tokenBytes: string;
  readonly #timeoutMs: number;
  readonly #changeTimeoutMs: number;
  readonly #fetch: Fetch;
  readonly #unknownFields = new UnknownFields();

  /** @throws TypeError for an invalid URL, or when there is none */
  constructor(options: BloomClientOptions) {
    this.#bases = [options.url].flat().map((url) => new URL(url.endsWith('/') ? url : `${url}/`));
    if (this.#bases.length === 0) throw new TypeError('url needs at least one address');
    this.#token = options.token ?? '';
    this.#tokenBytes = String.fromCharCode(...new TextEncoder().encode(this.#token));
    this.#timeoutMs = options.timeoutMs ?? 5000;
    this.#changeTimeoutMs = options.changeTimeoutMs ?? this.#timeoutMs;
    this.#fetch = (url, init) => (options.fetch ?? fetch)(url, init);
  }

  /** Creates a room on the least loaded node of the cluster. 400 if the id is taken, 503 if no node accepts rooms. */
  async createRoom(options: RoomOptions = {}): Promise<CreatedRoom> {
    const data = await this.#call<{ room: Room; service_address: string }>('POST', ['room'], { body: options });
    return { room: data.room, address: data.service_address };
  }

  /** Returns the rooms of the asked node, or with `cluster` of every reachable node. */
  listRooms(scope: 'local' | 'cluster' = 'local'): Promise<Room[]> {
    return this.#call('GET', ['room'], { query: { scope: scope === 'cluster' ? scope : undefined } });
  }

  /** Returns the rooms of all nodes, and the nodes that did not answer. */
  async snapshot(): Promise<RoomSnapshot> {
    const { data, unreachable = [] } = await this.#ask<Room[]>('GET', ['room'], { query: { scope: 'cluster' } });
    return { type: 'snapshot', rooms: data, unreachable };
  }

  /** Returns the room with its peers, components and tracks. */
  getRoom(roomId: string): Promise<Room> {
    return this.#call('GET', ['room', roomId]);
  }

  /** Changes the configuration of a room with immediate effect. Resolves with the room. */
  updateRoom(roomId: string, changes: RoomChanges): Promise<Room> {
    return this.#call('PATCH', ['room', roomId], { body: changes });
  }

  /** Removes a room and everything in it. Clients are disconnected. */
  deleteRoom(roomId: string): Promise<void> {
    return this.#call('DELETE', ['room', roomId]);
  }

  /** Adds a peer, whose client connects with the token. 503 if the room is full. */
  async addPeer(roomId: string, options: PeerOptions = {}): Promise<CreatedPeer> {
    return created(
      await this.#call<AddedPeer>('POST', ['room', roomId, 'peer'], { body: { type: 'webrtc', options } }),
    );
  }

  /** Invites guests, who join without the API token: on the page for guests, or by `acceptInvitation`. */
  async createInvitation(roomId: string, options: InvitationOptions = {}): Promise<Invitation> {
    const path = ['room', roomId, 'invitation'];
    const { token, url, expires_at } = await this.#call<CreatedInvitation>('POST', path, { body: options });
    return { token, url, expiresAt: expires_at };
  }

  /**
   * Adds the peer of a guest. 401 for a wrong token, 410 if the invitation has expired or is used up, 404 if its room
   * has ended, 503 if the room is full, 429 after too many attempts.
   */
  async acceptInvitation(token: string, options: { name?: string } = {}): Promise<CreatedPeer> {
    return created(await this.#call<AddedPeer>('POST', ['invitation'], { body: { token, ...options } }));
  }

  /**
   * Lets somebody watch a room without the API token: its stream and its recordings. `ttl`: seconds, 24 hours by
   * default, at most 30 days.
   */
  async createViewer(roomId: string, options: { ttl?: number } = {}): Promise<Viewer> {
    const path = ['room', roomId, 'viewer'];
    const { token, hls_url, expires_at } = await this.#call<CreatedViewer>('POST', path, { body: options });
    return { token, hlsUrl: hls_url, expiresAt: expires_at };
  }

  /**
   * Lets a browser test the ways to the asked node for 30 s, as ICE servers of a peer connection. This client's `token`
   * may also be an invitation or a peer's token. 429 after too many attempts, 503 if too many are in progress.
   */
  async createCheck(): Promise<PathCheck> {
    const { relays, expires_at } = await this.#call<CreatedCheck>('POST', ['check']);
    return { relays, expiresAt: expires_at };
  }

  /** Changes metadata and permissions with immediate effect. */
  updatePeer(roomId: string, peerId: string, changes: PeerChanges): Promise<Peer> {
    return this.#call('PATCH', ['room', roomId, 'peer', peerId], { body: changes });
  }

  /**
   * Removes a peer. `reason`, up to 100 bytes, is the close reason of the client's websocket. The request completes
   * even if its page is closed.
   */
  deletePeer(roomId: string, peerId: string, reason?: string): Promise<void> {
    return this.#call('DELETE', ['room', roomId, 'peer', peerId], reason === undefined ? {} : { body: { reason } });
  }

  /** Withholds a peer's track from everyone, or releases it again. */
  muteTrack(roomId: string, peerId: string, track: { id: string; muted: boolean }): Promise<Track> {
    return this.#call('PATCH', ['room', roomId, 'peer', peerId, 'track', track.id], { body: { muted: track.muted } });
  }

  /** Ends a peer's track. The client cannot publish it again under this id. */
  deleteTrack(roomId: string, peerId: string, trackId: string): Promise<void> {
    return this.#call('DELETE', ['room', roomId, 'peer', peerId, 'track', trackId]);
  }

  /** Sends a message to clients. Resolves with the number of clients it was sent to. */
  async sendMessage(roomId: string, message: RoomMessage): Promise<number> {
    const { delivered } = await this.#call<{ delivered: number }>('POST', ['room', roomId, 'message'], {
      body: message,
    });
    return delivered;
  }

  /** Adds a component. 400 for invalid options, or a kind that the node does not run. */
  addComponent<T extends ComponentType>(roomId: string, type: T, options: ComponentOptions[T]): Promise<Component<T>> {
    return this.#call('POST', ['room', roomId, 'component'], { body: { type, options } });
  }

  /** Pauses or resumes a recording: a gap in every track. */
  updateComponent(roomId: string, componentId: string, changes: { paused: boolean }): Promise<Component> {
    return this.#call('PATCH', ['room', roomId, 'component', componentId], { body: changes });
  }

  /** Removes a component with its tracks. A recording or a stream is completed. */
  deleteComponent(roomId: string, componentId: string): Promise<void> {
    return this.#call('DELETE', ['room', roomId, 'component', componentId]);
  }

  /** Subscribes an HLS or recording component in `manual` mode to the tracks of these peers and components. */
  subscribe(roomId: string, componentId: string, origins: readonly string[]): Promise<void> {
    return this.#call('POST', ['room', roomId, 'component', componentId, 'subscribe'], { body: { origins } });
  }

  /** Calls a phone number through a SIP component. Resolves when the call is scheduled. */
  dial(roomId: string, componentId: string, phoneNumber: string): Promise<void> {
    return this.#call('POST', ['sip', roomId, componentId, 'call'], { body: { phoneNumber } });
  }

  /** Ends the call of a SIP component. */
  hangUp(roomId: string, componentId: string): Promise<void> {
    return this.#call('DELETE', ['sip', roomId, componentId, 'call']);
  }

  /** Returns ids of finished persistent HLS streams on the asked node, or with `cluster` on every reachable node. */
  listRecordings(scope: 'local' | 'cluster' = 'local'): Promise<string[]> {
    return this.#call('GET', ['recording'], { query: { scope: scope === 'cluster' ? scope : undefined } });
  }

  /** Removes a finished stream from every node. 503 if a node did not answer, which may still have it. */
  deleteRecording(recordingId: string): Promise<void> {
    return this.#call('DELETE', ['recording', recordingId]);
  }

  /**
   * Returns recordings of tracks on the asked node, or with `cluster` on every reachable node, newest first: at most
   * `limit` (100 by default, up to 1,000) of one room or of all. `after`: the last one of the list before.
   */
  async listRawRecordings(scope: 'local' | 'cluster' = 'local', query?: RawRecordingQuery): Promise<RawRecording[]> {
    return (await this.#rawRecordings(scope, query)).recordings;
  }

  /** Returns recordings of tracks on all nodes, as `listRawRecordings` does, and the nodes that did not answer. */
  rawRecordingSnapshot(query?: RawRecordingQuery): Promise<RawRecordingSnapshot> {
    return this.#rawRecordings('cluster', query);
  }

  /**
   * Removes a recording of tracks from every node, and ends its upload. 404 while it is recorded; 503 if a node did not
   * answer, which may still have it. Objects of a complete upload stay.
   */
  deleteRawRecording(room: string, part: string): Promise<void> {
    return this.#call('DELETE', ['raw_recording', room, part]);
  }

  /**
   * Queues the mix of a recording of tracks into one movie; `listRawRecordings` shows its state. 404 without such a
   * recording; 409 while it is recorded or mixed; 503 if too many mixes wait, or the server cannot mix.
   */
  async mixRawRecording(room: string, part: string, options: MixOptions = {}): Promise<RawRecordingMix> {
    return mixOf(await this.#call<ListedMix>('POST', ['raw_recording', room, part, 'mix'], { body: options }));
  }

  /** Ends the mix of a recording of tracks, or removes its movie from every node; an uploaded one stays. */
  deleteRawRecordingMix(room: string, part: string): Promise<void> {
    return this.#call('DELETE', ['raw_recording', room, part, 'mix']);
  }

  /** Returns the address of a file of a recording of tracks, such as `report.json`. Players send `authorization`. */
  rawRecordingUrl(room: string, part: string, file: string): string {
    return this.#url(this.#base, ['raw_recording', room, part, file]).href;
  }

  /** Returns the playlist address of a room's HLS stream. Players send `authorization` if the server requires it. */
  streamUrl(roomId: string): string {
    return this.#url(this.#base, ['hls', roomId, 'index.m3u8']).href;
  }

  /** Returns the playlist address of a finished stream. Players send `authorization`. */
  recordingUrl(recordingId: string): string {
    return this.#url(this.#base, ['recording', recordingId, 'index.m3u8']).href;
  }

  /** Value of the `authorization` header, for requests made without this client, such as for the files of a stream. */
  get authorization(): string {
    return `Bearer ${this.#tokenBytes}`;
  }

  /** Returns the cluster's nodes, their load and their links. */
  cluster(): Promise<Cluster> {
    return this.#call('GET', ['cluster']);
  }

  /** Returns why a room is on its node or, without a room, where the next one would go. */
  placement(roomId?: string): Promise<PlacementDecision> {
    return this.#call('GET', ['cluster', 'placement'], { query: { room: roomId } });
  }

  /** Returns the last log lines of a node, oldest first. */
  logs(options: LogOptions = {}): Promise<LogLine[]> {
    return this.#call('GET', ['cluster', 'logs'], { query: { ...options } });
  }

  /** Measures for one second what a peer sends and receives. */
  peerStats(roomId: string, peerId: string): Promise<PeerStats> {
    return this.#call('GET', ['room', roomId, 'peer', peerId, 'stats']);
  }

  /** Keeps new rooms away from a node. Its current rooms continue, there or, with `move`, on other nodes. */
  drain({ node, ...options }: DrainOptions = {}): Promise<Draining> {
    return this.#call('POST', ['node', 'drain'], { body: options, query: { node } });
  }

  /** Lets a node accept new rooms again. */
  undrain({ node }: Pick<DrainOptions, 'node'> = {}): Promise<Draining> {
    return this.#call('DELETE', ['node', 'drain'], { query: { node } });
  }

  /** Moves a room to a node, by default the least loaded other one. Throws `BloomApiError` 409 if the room stays. */
  moveRoom(roomId: string, node?: string): Promise<RoomMove> {
    return this.#call('POST', ['room', roomId, 'move'], { body: { node } });
  }

  /** Returns the state of the asked node. */
  health(): Promise<Health> {
    return this.#call('GET', ['health']);
  }

  /**
   * Yields all room events from now on. The iterator ends when `signal` aborts. It throws `BloomApiError` 401 for a
   * wrong token and `BloomConnectionError` if the connection is lost: events are not repeated, so list the rooms and
   * iterate again.
   */
  notifications(options?: NotificationStreamOptions & { reconnect?: false }): AsyncIterableIterator<Notification>;
  /**
   * With `reconnect`, restores a lost connection, trying the next node if there are several. Each connection begins
   * with a `snapshot` of the rooms of all nodes except those in `unreachable`. Events follow; the snapshot may already
   * include those that happened while the rooms were listed.
   */
  notifications(options: ReconnectingStreamOptions): AsyncIterableIterator<Notification | RoomSnapshot>;
  notifications({
    reconnect = false,
    ...options
  }: Omit<ReconnectingStreamOptions, 'reconnect'> & { reconnect?: boolean } = {}): AsyncIterableIterator<
    Notification | RoomSnapshot
  > {
    if (!reconnect) return notificationStream(this.#socketUrl(), this.#token, options);
    let opened: URL | undefined;

    return reconnecting({
      ...options,
      snapshot: () => this.snapshot(),
      open: (each) => {
        if (opened !== undefined) this.#leave(opened);
        opened = this.#base;
        return notificationStream(this.#socketUrl(), this.#token, each);
      },
    });
  }

  /** Yields one report of each node per second: the JSON of docs/reference/metrics.md. */
  metrics(options: StreamOptions = {}): AsyncIterableIterator<Record<string, unknown>> {
    return metricsReports(this.#socketUrl(), this.#token, options);
  }

  get #base(): URL {
    return this.#bases[this.#asked] as URL;
  }

  /** Switches to the next node, unless another call has already done so. */
  #leave(base: URL): void {
    if (this.#base === base) this.#asked = (this.#asked + 1) % this.#bases.length;
  }

  #socketUrl(): URL {
    const url = new URL('socket/server/websocket', this.#base);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    return url;
  }

  #url(base: URL, path: readonly string[]): URL {
    return new URL(path.map(segment).join('/'), base);
  }

  async #call<T>(method: string, path: string[], content: Content = {}): Promise<T> {
    return (await this.#ask<T>(method, path, content)).data;
  }

  async #rawRecordings(scope: 'local' | 'cluster', query?: RawRecordingQuery): Promise<RawRecordingSnapshot> {
    const content = { query: rawQueryOf(scope, query) };
    const { data, unreachable = [] } = await this.#ask<ListedRawRecording[]>('GET', ['raw_recording'], content);
    return { recordings: data.map(recordingOf), unreachable };
  }

  async #ask<T>(method: string, path: string[], content: Content = {}): Promise<Answer<T>> {
    for (let left = this.#bases.length; ; left -= 1) {
      const base = this.#base;
      try {
        return await this.#callNode<T>(base, { method, path, ...content });
      } catch (error) {
        if (!(error instanceof BloomConnectionError)) throw error;
        this.#leave(base);
        // A node that received a change may have made it.
        if (left <= 1 || !(method === 'GET' || wasNotSent(error))) throw error;
      }
    }
  }

  async #callNode<T>(base: URL, { method, path, body, query = {} }: Call): Promise<Answer<T>> {
    const url = this.#url(base, path);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, `${value}`);
    const limitMs = method === 'GET' ? this.#timeoutMs : this.#changeTimeoutMs;
    let response: FetchedAnswer;
    let text: string;
    try {
      response = await this.#fetch(url, {
        method,
        headers: {
          authorization: this.authorization,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        // The page may be closing while it gives back what it took.
        keepalive: method === 'DELETE',
        signal: limitMs === Infinity ? null : AbortSignal.timeout(limitMs),
      });
      text = await response.text();
    } catch (cause) {
      throw new BloomConnectionError(`${method} ${url.href} got no answer: ${reasonOf(cause)}`, { cause });
    }
    this.#unknownFields.warn(`${method} /${path.join('/')}`, response.headers);
    const json = parse(text);
    if (!response.ok) {
      throw new BloomApiError(
        response.status,
        sentenceOf(json, response),
        response.headers.get('x-request-id') ?? undefined,
      );
    }
    return (json ?? {}) as Answer<T>;
  }
}

/** Query parameters; those without a value are omitted. */
type Query = Readonly<Record<string, string | number | undefined>>;

interface Content {
  body?: unknown;
  query?: Query;
}

interface Call extends Content {
  method: string;
  path: string[];
}

/** Codes of failures before a request is sent. */
const NOT_SENT: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
]);

function wasNotSent(error: BloomConnectionError): boolean {
  const cause = error.cause as { cause?: { code?: unknown } } | undefined;

  return NOT_SENT.has(cause?.cause?.code);
}

/** URLs resolve dot segments, encoded or not: the id `..` would address its parent, such as a peer's room. */
function segment(id: string): string {
  if (id === '' || id === '.' || id === '..') throw new TypeError(`${JSON.stringify(id)} is not a valid id`);
  return encodeURIComponent(id);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Some answers are plain text or empty.
    return undefined;
  }
}

function sentenceOf(json: unknown, response: FetchedAnswer): string {
  const errors = (json as { errors?: unknown } | undefined)?.errors;
  if (typeof errors === 'string') return errors;
  const detail = (errors as { detail?: unknown } | undefined)?.detail;
  return typeof detail === 'string' ? detail : `the server answered ${response.status} ${response.statusText}`;
}

/** `fetch` hides the system's reason one level down. */
function reasonOf(thrown: unknown): string {
  return messageOf((thrown as { cause?: unknown } | null)?.cause) ?? messageOf(thrown) ?? String(thrown);
}

/** Avoids `instanceof`: under test runners that isolate modules, errors of `fetch` belong to another realm. */
function messageOf(error: unknown): string | undefined {
  const message = (error as { message?: unknown } | null | undefined)?.message;
  return typeof message === 'string' && message !== '' ? message : undefined;
}
