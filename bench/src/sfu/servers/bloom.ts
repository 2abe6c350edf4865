import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { decodePeerMessage, encodePeerMessage } from '@bloom/protocol';
import type { RTCPeerConnection } from 'werift';
import WebSocket from 'ws';
import type { Kind, Publisher } from '../client.js';
import { connected } from '../client.js';
import { address } from '../private-network.js';
import { ServerProcess } from '../process.js';
import type { Server, ServerKind } from './server.js';
import { gathered } from './server.js';

const main = join(dirname(fileURLToPath(import.meta.url)), '../../../../apps/bloom/dist/main.js');
const token = 'development';

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((done) => probe.listen(0, address, done));
  const { port } = probe.address() as AddressInfo;
  await new Promise((done) => probe.close(done));
  return port;
}

export interface BloomOptions {
  /** Media workers of the node. */
  workers: number;
  /** For the node program, before the script. */
  nodeFlags: readonly string[];
  /** The compiled `main.js` of another build, to compare with. */
  main?: string;
}

export interface BloomServer extends Server {
  /** Those who connect from now on do so in a new room. */
  nextRoom(): Promise<void>;
  /** As `subscribe`; the answer takes the peer out of the room again. */
  visit(pc: RTCPeerConnection): Promise<() => Promise<void>>;
}

export interface BloomKind extends ServerKind {
  start(kind: Kind): Promise<BloomServer>;
}

export function bloom(options: BloomOptions): BloomKind {
  const name = options.main === undefined ? 'bloom' : `bloom (${options.main})`;
  return {
    name: options.workers === 1 ? name : `${name} (${options.workers} workers)`,
    unavailable: () => undefined,
    async start() {
      const resources = mkdtempSync(join(tmpdir(), 'bloom-bench-node-'));
      const port = await freePort();
      const metricsPort = await freePort();
      const server = new ServerProcess(process.execPath, [...options.nodeFlags, options.main ?? main], {
        env: {
          PATH: process.env.PATH,
          JF_IP: address,
          JF_PORT: String(port),
          JF_METRICS_PORT: String(metricsPort),
          JF_WEBRTC_TURN_IP: address,
          JF_WEBRTC_TURN_LISTEN_IP: address,
          JF_SERVER_API_TOKEN: token,
          JF_RESOURCES_BASE_PATH: resources,
          JF_MEDIA_WORKERS: String(options.workers),
        },
      });
      const base = `http://${address}:${port}`;
      const call = async (method: string, path: string, body?: unknown) => {
        const response = await fetch(base + path, {
          method,
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
        return (response.status === 204 ? {} : await response.json()) as { data: never };
      };
      await server.until(async () => (await fetch(`${base}/health`)).status === 401);
      const openRoom = async () => ((await call('POST', '/room')).data as { room: { id: string } }).room.id;
      let roomId = await openRoom();
      const sockets: WebSocket[] = [];

      const join_ = async (pc: RTCPeerConnection, publisher?: Publisher) => {
        const added = (await call('POST', `/room/${roomId}/peer`, { type: 'webrtc' })).data as {
          token: string;
          peer: { id: string };
        };
        const socket = new WebSocket(`ws://${address}:${port}/socket/peer/websocket`);
        sockets.push(socket);
        await signal(pc, socket, added.token, publisher);
        const peerOf = `/room/${roomId}/peer/${added.peer.id}`;
        return async () => {
          await call('DELETE', peerOf);
          sockets.splice(sockets.indexOf(socket), 1);
        };
      };
      return {
        name: this.name,
        pid: server.pid,
        publish: async (pc, publisher) => void (await join_(pc, publisher)),
        subscribe: async (pc) => void (await join_(pc)),
        visit: (pc) => join_(pc),
        nextRoom: async () => {
          roomId = await openRoom();
        },
        close: async () => {
          for (const socket of sockets) socket.terminate();
          await server.stop();
          rmSync(resources, { recursive: true, force: true });
        },
      };
    },
  };
}

interface OfferData {
  tracksTypes: { audio?: number; video?: number };
}

/** The client's half of the signalling, as the published SDK does it but over host candidates. */
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
        if (publisher) {
          pc.addTransceiver(publisher.track, { direction: 'sendonly' });
          custom('renegotiateTracks');
        }
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
