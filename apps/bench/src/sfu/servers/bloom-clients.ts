import { connected, gathered, type Publisher, signal } from '@bloom/participant';
import type { RTCPeerConnection } from 'werift';
import WebSocket from 'ws';
import { address } from '../private-network.js';
import { joinByLivekit } from './livekit-client.js';

export const token = 'development';

/** Signalling of the clients: like the SDK, by WHIP and WHEP, or like LiveKit's. */
export type Signalling = 'websocket' | 'http' | 'livekit';

/** Joins rooms of a Bloom node over its HTTP API and peer websockets. */
export class BloomClients {
  readonly #sockets = new Set<WebSocket>();

  constructor(
    readonly port: number,
    readonly signalling: Signalling = 'websocket',
  ) {}

  async openRoom(): Promise<string> {
    return ((await this.#call('POST', '/room')).data as { room: { id: string } }).room.id;
  }

  /** Joins a room. Returns the function that removes the peer from it. */
  async join(roomId: string, pc: RTCPeerConnection, publisher?: Publisher): Promise<() => Promise<void>> {
    if (this.signalling === 'livekit') {
      const { socket, leave } = await joinByLivekit(pc, { port: this.port, room: roomId, publisher });
      this.#sockets.add(socket);

      return async () => {
        await leave();
        this.#sockets.delete(socket);
      };
    }
    const { data } = await this.#call('POST', `/room/${roomId}/peer`, { type: 'webrtc' });
    const added = data as { token: string; peer: { id: string } };
    if (this.signalling === 'http') {
      const url = `http://${address}:${this.port}/${publisher === undefined ? 'whep' : 'whip'}`;
      await exchange(pc, { url, token: added.token, publisher });

      return async () => void (await this.#call('DELETE', `/room/${roomId}/peer/${added.peer.id}`));
    }
    const socket = new WebSocket(`ws://${address}:${this.port}/socket/peer/websocket`);
    this.#sockets.add(socket);
    await signal(pc, socket, { token: added.token, publisher });

    return async () => {
      await this.#call('DELETE', `/room/${roomId}/peer/${added.peer.id}`);
      this.#sockets.delete(socket);
    };
  }

  close(): void {
    for (const socket of this.#sockets) socket.terminate();
  }

  async #call(method: string, path: string, body?: unknown): Promise<{ data?: unknown }> {
    const response = await fetch(`http://${address}:${this.port}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);

    return response.status === 204 ? {} : ((await response.json()) as { data?: unknown });
  }
}

/** The client side of WHIP and WHEP: one offer, one answer. */
async function exchange(
  pc: RTCPeerConnection,
  { url, token, publisher }: { url: string; token: string; publisher: Publisher | undefined },
): Promise<void> {
  if (publisher === undefined) pc.addTransceiver('video', { direction: 'recvonly' });
  else pc.addTransceiver(publisher.track, { direction: 'sendonly' });
  await pc.setLocalDescription(await pc.createOffer());
  await gathered(pc);
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/sdp' },
    body: pc.localDescription?.sdp ?? '',
  });
  const sdp = await response.text();
  if (response.status !== 201) throw new Error(`POST ${url}: ${response.status} ${sdp}`);
  await pc.setRemoteDescription({ type: 'answer', sdp });
  await connected(pc, publisher === undefined ? 'viewer' : 'publisher');
}
