import { decodePeerMessage, encodePeerMessage } from '@bloom/protocol';
import type { RTCPeerConnection } from 'werift';
import WebSocket from 'ws';
import type { Publisher } from '../client.js';
import { connected } from '../client.js';
import { address } from '../private-network.js';
import { gathered } from './server.js';

export const token = 'development';

/** Signalling of the clients: like the SDK, or by WHIP and WHEP. */
export type Signalling = 'websocket' | 'http';

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
    const { data } = await this.#call('POST', `/room/${roomId}/peer`, { type: 'webrtc' });
    const added = data as { token: string; peer: { id: string } };
    if (this.signalling === 'http') {
      const url = `http://${address}:${this.port}/${publisher === undefined ? 'whep' : 'whip'}`;
      await exchange(pc, { url, token: added.token, publisher });

      return async () => void (await this.#call('DELETE', `/room/${roomId}/peer/${added.peer.id}`));
    }
    const socket = new WebSocket(`ws://${address}:${this.port}/socket/peer/websocket`);
    this.#sockets.add(socket);
    await signal(pc, socket, added.token, publisher);

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

interface OfferData {
  tracksTypes: { audio?: number; video?: number };
}

/** The client side of the signalling, like the published SDK but over host candidates. */
export async function signal(
  pc: RTCPeerConnection,
  socket: WebSocket,
  token: string,
  publisher?: Publisher,
): Promise<void> {
  const send = (event: unknown) => socket.send(encodePeerMessage({ type: 'mediaEvent', data: JSON.stringify(event) }));
  const custom = (type: string, data?: unknown) => send({ type: 'custom', data: { type, data } });
  let ownId = '';
  let slots = 0;

  const offer = async ({ tracksTypes }: OfferData) => {
    const wanted = (tracksTypes.audio ?? 0) + (tracksTypes.video ?? 0);
    for (; slots < wanted; slots += 1) {
      pc.addTransceiver(slots < (tracksTypes.audio ?? 0) ? 'audio' : 'video', { direction: 'recvonly' });
    }
    await pc.setLocalDescription(await pc.createOffer());
    await gathered(pc);
    const mid = pc.getTransceivers().find((t) => t.sender.track)?.mid;
    const trackId = `${ownId}:load`;
    custom('sdpOffer', {
      sdpOffer: { type: 'offer', sdp: pc.localDescription?.sdp },
      trackIdToTrackMetadata: publisher ? { [trackId]: null } : {},
      trackIdToTrackBitrates: publisher ? { [trackId]: 50_000_000 } : {},
      midToTrackId: publisher && mid ? { [mid]: trackId } : {},
    });
  };

  await new Promise<void>((done, failed) => {
    const fail = (error: unknown) => failed(error instanceof Error ? error : new Error(String(error)));
    socket.on('error', fail);
    socket.on('close', (code, reason) => fail(`peer websocket closed: ${code} ${reason.toString()}`));
    socket.on('open', () => socket.send(encodePeerMessage({ type: 'authRequest', token })));
    socket.on('message', (data: Buffer) => {
      const message = decodePeerMessage(data);
      if (message.type === 'authenticated') send({ type: 'connect', data: { metadata: null } });
      if (message.type !== 'mediaEvent') return;
      let event = JSON.parse(message.data) as { type: string; data?: never };
      if (event.type === 'custom') event = event.data as unknown as typeof event;
      const body = event.data as unknown;
      if (event.type === 'connected') {
        ownId = (body as { id: string }).id;
        if (publisher) pc.addTransceiver(publisher.track, { direction: 'sendonly' });
        if (publisher || pc.sctpTransport) custom('renegotiateTracks');
      } else if (event.type === 'offerData') {
        offer(body as OfferData).catch(fail);
      } else if (event.type === 'sdpAnswer') {
        pc.setRemoteDescription(body as { type: 'answer'; sdp: string })
          .then(() => connected(pc, publisher ? 'publisher' : 'subscriber'))
          .then(done, fail);
      } else if (event.type === 'candidate') {
        pc.addIceCandidate(body as { candidate: string; sdpMLineIndex: number }).catch(fail);
      }
    });
  });
}
