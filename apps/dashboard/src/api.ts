// The HTTP API (docs/reference/http-api.md). Every failure is a `Problem`.
import type {
  Component,
  ComponentType,
  Health,
  Peer,
  PeerChanges,
  PeerOptions,
  Room,
  RoomChanges,
  RoomOptions,
  Track,
} from '@bloom/server-sdk';
import type { Cluster, LogLine, PeerStats, Placement } from './api-types.js';
import { problemOfAnswer, serverUnreachable } from './problem.js';

/** A peer that was added for this page, or for a program that the user starts. */
export interface Seat {
  readonly roomId: string;
  readonly peerId: string;
  readonly token: string;
  /** host[:port]/path of the signalling socket, without scheme. */
  readonly socketUrl: string;
  readonly whipUrl: string;
}

/** A node answers a question within seconds, also where others are silent. One that hangs may hold the connection for hours. */
const ANSWER_MS = 30_000;
/** Rooms that the page opened and everybody has left are removed after this many seconds. */
const PURGE_AFTER_S = 300;

export class Api {
  readonly #base: string;
  readonly #token: string;

  /** `base` is the address of this page's folder; the API lies beside it. */
  constructor(base: string, token: string) {
    this.#base = base;
    this.#token = token;
  }

  get token(): string {
    return this.#token;
  }

  /** host[:port] of the node that serves this page. */
  get host(): string {
    return new URL(this.#base).host;
  }

  url(...path: string[]): URL {
    return new URL(path.map(encodeURIComponent).join('/'), this.#base);
  }

  /** Returns the address of a websocket of the node that serves this page. */
  socketUrl(of: 'peer' | 'server'): string {
    return this.url('socket', of, 'websocket').href.replace(/^http/, 'ws');
  }

  async #answer(method: string, url: URL, body?: unknown): Promise<Json> {
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    const text = await this.#send(url, { method, ...content }, 'application/json');
    return jsonOf(text);
  }

  /** @throws Problem */
  async #send(url: URL, init: RequestInit, type: string, token = this.#token): Promise<string> {
    let answer: Response;
    let text: string;
    try {
      answer = await fetch(url, {
        ...init,
        headers: { authorization: bearer(token), 'content-type': type },
        // Not for what changes something, such as the end of a long recording: whether it happened would stay open.
        ...(init.method === 'GET' ? { signal: AbortSignal.timeout(ANSWER_MS) } : {}),
      });
      // The connection may be lost in the middle of an answer as well.
      text = await answer.text();
    } catch {
      throw serverUnreachable(this.host);
    }
    if (answer.ok) return text;
    const { errors } = jsonOf(text);
    throw problemOfAnswer(answer.status, typeof errors === 'string' ? errors : '');
  }

  async #request<T>(method: string, path: readonly string[], body?: unknown): Promise<T> {
    return (await this.#answer(method, this.url(...path), body)).data as T;
  }

  async #query<T>(path: readonly string[], query: Readonly<Record<string, string>>): Promise<T> {
    const url = this.url(...path);
    for (const [name, value] of Object.entries(query)) if (value !== '') url.searchParams.set(name, value);
    return (await this.#answer('GET', url)).data as T;
  }

  health(): Promise<Health> {
    return this.#request('GET', ['health']);
  }

  /** Returns the rooms of all nodes, and the nodes that did not answer. */
  async rooms(): Promise<{ rooms: Room[]; unreachable: string[] }> {
    const url = this.url('room');
    url.searchParams.set('scope', 'cluster');
    const { data, unreachable = [] } = await this.#answer('GET', url);
    return { rooms: data as Room[], unreachable };
  }

  room(roomId: string): Promise<Room> {
    return this.#request('GET', ['room', roomId]);
  }

  async createRoom(options: RoomOptions): Promise<Room> {
    return (await this.#request<{ room: Room }>('POST', ['room'], options)).room;
  }

  /** Creates the room unless it exists. */
  async openRoom(roomId: string, config: { videoCodec?: 'h264' } = {}): Promise<void> {
    try {
      await this.createRoom({ roomId, peerlessPurgeTimeout: PURGE_AFTER_S, ...config });
    } catch (error) {
      if (error instanceof Error && error.message.endsWith('room already exists')) return;
      throw error;
    }
  }

  updateRoom(roomId: string, changes: RoomChanges): Promise<Room> {
    return this.#request('PATCH', ['room', roomId], changes);
  }

  deleteRoom(roomId: string): Promise<void> {
    return this.#request('DELETE', ['room', roomId]);
  }

  /** Starts to stream a room, creating it if necessary: only rooms that enforce H.264 can be streamed. */
  async startStream(roomId: string): Promise<void> {
    await this.openRoom(roomId, { videoCodec: 'h264' });
    await this.addComponent(roomId, 'hls', { lowLatency: true });
  }

  async takeSeat(roomId: string, options: PeerOptions = {}): Promise<Seat> {
    const { peer, token, peer_websocket_url, whip_url } = await this.#request<{
      peer: { id: string };
      token: string;
      peer_websocket_url: string;
      whip_url: string;
    }>('POST', ['room', roomId, 'peer'], { type: 'webrtc', options });
    return { roomId, peerId: peer.id, token, socketUrl: peer_websocket_url, whipUrl: whip_url };
  }

  /** Opens a WHEP session with the token of a seat. Returns the SDP answer. */
  watch({ token }: Seat, what: Readonly<Record<string, string>>, offer: string): Promise<string> {
    const url = this.url('whep');
    for (const [name, value] of Object.entries(what)) url.searchParams.set(name, value);
    return this.#send(url, { method: 'POST', body: offer }, 'application/sdp', token);
  }

  /** Gives the seat back, also while the page unloads. A seat that no longer exists is no error. */
  leaveSeat({ roomId, peerId }: Seat): void {
    const headers = { authorization: bearer(this.#token) };
    fetch(this.url('room', roomId, 'peer', peerId), { method: 'DELETE', keepalive: true, headers }).catch(() => {});
  }

  updatePeer(roomId: string, peerId: string, changes: PeerChanges): Promise<Peer> {
    return this.#request('PATCH', ['room', roomId, 'peer', peerId], changes);
  }

  removePeer(roomId: string, peerId: string, reason: string): Promise<void> {
    return this.#request('DELETE', ['room', roomId, 'peer', peerId], reason === '' ? undefined : { reason });
  }

  peerStats(roomId: string, peerId: string): Promise<PeerStats> {
    return this.#request('GET', ['room', roomId, 'peer', peerId, 'stats']);
  }

  muteTrack(roomId: string, peerId: string, trackId: string, muted: boolean): Promise<Track> {
    return this.#request('PATCH', ['room', roomId, 'peer', peerId, 'track', trackId], { muted });
  }

  addComponent(roomId: string, type: ComponentType, options: object): Promise<Component> {
    return this.#request('POST', ['room', roomId, 'component'], { type, options });
  }

  removeComponent(roomId: string, componentId: string): Promise<void> {
    return this.#request('DELETE', ['room', roomId, 'component', componentId]);
  }

  subscribeComponent(roomId: string, componentId: string, origins: readonly string[]): Promise<void> {
    return this.#request('POST', ['room', roomId, 'component', componentId, 'subscribe'], { origins });
  }

  dial(roomId: string, componentId: string, phoneNumber: string): Promise<void> {
    return this.#request('POST', ['sip', roomId, componentId, 'call'], { phoneNumber });
  }

  hangUp(roomId: string, componentId: string): Promise<void> {
    return this.#request('DELETE', ['sip', roomId, componentId, 'call']);
  }

  recordings(): Promise<string[]> {
    return this.#query(['recording'], { scope: 'cluster' });
  }

  removeRecording(id: string): Promise<void> {
    return this.#request('DELETE', ['recording', id]);
  }

  cluster(): Promise<Cluster> {
    return this.#request('GET', ['cluster']);
  }

  /** Returns why a room is where it is; for '', where the next one would go. */
  placement(room: string): Promise<Placement> {
    return this.#query(['cluster', 'placement'], { room });
  }

  logs(query: { node: string; level: string; match: string; limit: string }): Promise<LogLine[]> {
    return this.#query(['cluster', 'logs'], query);
  }

  async setDraining(node: string, draining: boolean): Promise<void> {
    const url = this.url('node', 'drain');
    if (node !== '') url.searchParams.set('node', node);
    await this.#answer(draining ? 'POST' : 'DELETE', url);
  }
}

/** Returns the header for a token: its UTF-8 bytes as Latin-1 text, which is what headers take. */
export function bearer(token: string): string {
  return `Bearer ${String.fromCharCode(...new TextEncoder().encode(token))}`;
}

interface Json {
  readonly data?: unknown;
  readonly errors?: unknown;
  readonly unreachable?: string[];
}

/** Returns the JSON of an answer; some answers are a text, and a proxy has error pages of its own. */
function jsonOf(text: string): Json {
  try {
    return (JSON.parse(text) ?? {}) as Json;
  } catch {
    return {};
  }
}
