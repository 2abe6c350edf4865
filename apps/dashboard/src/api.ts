// The part of the HTTP API that the page needs. Every failure is a `Problem`.
import { problemOfAnswer, serverUnreachable } from './problem.js';

export interface RoomSummary {
  readonly id: string;
  readonly peers: number;
  readonly maxPeers: number | null;
  readonly videoCodec: string | null;
}

export interface Seat {
  readonly roomId: string;
  readonly peerId: string;
  readonly token: string;
  /** host[:port]/path of the signalling socket, without scheme. */
  readonly socketUrl: string;
}

interface RoomJson {
  readonly id: string;
  readonly config: { readonly maxPeers: number | null; readonly videoCodec: string | null };
  readonly peers: readonly unknown[];
}

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

  async #request<T>(method: string, path: string, body?: unknown): Promise<T> {
    let answer: Response;
    try {
      answer = await fetch(new URL(path, this.#base), {
        method,
        headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch {
      throw serverUnreachable(new URL(this.#base).host);
    }
    const text = await answer.text();
    let json: { data?: T; errors?: unknown } = {};
    try {
      json = text === '' ? {} : (JSON.parse(text) as typeof json);
    } catch {
      // An error page of a proxy: the status is enough.
    }
    if (!answer.ok) throw problemOfAnswer(answer.status, typeof json.errors === 'string' ? json.errors : '');
    return json.data as T;
  }

  async rooms(): Promise<RoomSummary[]> {
    const rooms = await this.#request<RoomJson[]>('GET', 'room');
    return rooms
      .map(({ id, config, peers }) => ({ id, peers: peers.length, ...config }))
      .toSorted((a, b) => a.id.localeCompare(b.id));
  }

  /** Creates the room unless it exists. */
  async openRoom(roomId: string, config: { videoCodec?: 'h264' } = {}): Promise<void> {
    try {
      await this.#request('POST', 'room', { roomId, peerlessPurgeTimeout: PURGE_AFTER_S, ...config });
    } catch (error) {
      if (error instanceof Error && error.message.endsWith('room already exists')) return;
      throw error;
    }
  }

  /** Starts to stream a room, creating it if necessary: only rooms that enforce H.264 can be streamed. */
  async startStream(roomId: string): Promise<void> {
    await this.openRoom(roomId, { videoCodec: 'h264' });
    await this.#request('POST', `room/${encodeURIComponent(roomId)}/component`, {
      type: 'hls',
      options: { lowLatency: true },
    });
  }

  async takeSeat(roomId: string): Promise<Seat> {
    const data = await this.#request<{ peer: { id: string }; token: string; peer_websocket_url: string }>(
      'POST',
      `room/${encodeURIComponent(roomId)}/peer`,
      { type: 'webrtc', options: { enableSimulcast: true } },
    );
    return { roomId, peerId: data.peer.id, token: data.token, socketUrl: data.peer_websocket_url };
  }

  /** Gives the seat back, also while the page unloads. A seat that no longer exists is no error. */
  leaveSeat({ roomId, peerId }: Seat): void {
    const url = new URL(`room/${encodeURIComponent(roomId)}/peer/${encodeURIComponent(peerId)}`, this.#base);
    fetch(url, { method: 'DELETE', keepalive: true, headers: { authorization: `Bearer ${this.#token}` } }).catch(
      () => {},
    );
  }
}
