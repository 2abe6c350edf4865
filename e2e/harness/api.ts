// Uses the HTTP API as an outside caller would.
import { apiToken } from './bloom-node.js';

export interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- JSON of another program; the tests state what they expect
  readonly body: any;
}

export interface RoomOptions {
  readonly roomId?: string;
  readonly maxPeers?: number;
  readonly videoCodec?: 'h264' | 'vp8';
  readonly webhookUrl?: string;
  readonly dataEvents?: readonly string[];
}

export interface NewPeer {
  readonly id: string;
  readonly token: string;
}

export class Api {
  constructor(readonly url: string) {}

  async request(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        // Nodes are killed and cut off, so a kept-alive connection could stay silent for minutes.
        connection: 'close',
        authorization: `Bearer ${apiToken}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
  }

  async #expect(status: number, line: string, body?: unknown): Promise<Answer['body']> {
    const [method = '', path = ''] = line.split(' ');
    const answer = await this.request(method, path, body);
    if (answer.status === status) return answer.body;
    throw new Error(`${line} answered ${answer.status}, not ${status}: ${JSON.stringify(answer.body)}`);
  }

  async createRoom(options: RoomOptions = {}): Promise<string> {
    return (await this.#expect(201, 'POST /room', options)).data.room.id;
  }

  async addPeer(roomId: string, options: Readonly<Record<string, unknown>> = {}): Promise<NewPeer> {
    const { data } = await this.#expect(201, `POST /room/${roomId}/peer`, { type: 'webrtc', options });
    return { id: data.peer.id, token: data.token };
  }

  async room(roomId: string): Promise<Answer['body']> {
    return (await this.#expect(200, `GET /room/${roomId}`)).data;
  }

  async deletePeer(roomId: string, peerId: string): Promise<void> {
    await this.#expect(204, `DELETE /room/${roomId}/peer/${peerId}`);
  }

  async deleteRoom(roomId: string): Promise<void> {
    await this.#expect(204, `DELETE /room/${roomId}`);
  }
}
