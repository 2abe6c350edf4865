import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TrackKind } from '@bloom/participant';
import type { RTCPeerConnection } from 'werift';
import { address } from '../private-network.js';
import { freePort, ServerProcess } from '../process.js';
import { BloomClients, type Signalling, token } from './bloom-clients.js';
import { livekitNode } from './livekit-client.js';
import type { Server, ServerKind } from './server.js';

const main = join(dirname(fileURLToPath(import.meta.url)), '../../../../bloom/dist/main.js');
/** Also used by the end-to-end tests. */
const acrossWorkers = new URL('../../../../../e2e/harness/across-workers.mjs', import.meta.url);

export interface BloomOptions {
  /** Number of media workers of the node. */
  workers: number;
  /** Node.js flags for the node process. */
  nodeFlags: readonly string[];
  /** The compiled `main.js` of another build, for comparison. */
  main?: string;
  signalling?: Signalling;
  /** Every second transport of a room goes to the other one of two workers, however idle the first one is. */
  spans?: boolean;
  /** Two nodes, of which clients reach the first; with `standbys`, each room has one on the node where it is not. */
  cluster?: 'plain' | 'standbys';
}

export interface BloomServer extends Server {
  readonly port: number;
  /** Process ids of all nodes. */
  readonly pids: readonly number[];
  /** Directory of its files. */
  readonly resources: string;
  /** Returns the room that connecting clients join now. */
  room(): string;
  /** Makes later clients connect to a new room. */
  nextRoom(): Promise<void>;
  /** Connects a receiver. Returns the function that removes it from the room. */
  visit(pc: RTCPeerConnection): Promise<() => Promise<void>>;
}

export interface BloomKind extends ServerKind {
  start(kind: TrackKind): Promise<BloomServer>;
}

const NAMES: Readonly<Record<Signalling, string>> = {
  websocket: 'bloom',
  http: 'bloom by WHIP and WHEP',
  livekit: "bloom with LiveKit's clients",
};

const CLUSTERS = { plain: 'bloom with a second node', standbys: 'bloom with standbys' };

/** Settings of a node of a cluster on this machine. */
const member = (name: string, kind: BloomOptions['cluster']): Record<string, string> => ({
  JF_DIST_ENABLED: 'true',
  JF_DIST_MODE: 'name',
  JF_DIST_NODE_NAME: `${name}@${address}`,
  JF_DIST_NODES: `one@${address} two@${address}`,
  JF_DIST_COOKIE: token,
  // The later rooms are on the other node.
  JF_SECRET_KEY_BASE: token.repeat(8),
  JF_DIST_IP: address,
  JF_STANDBY: String(kind === 'standbys'),
});

export function bloom(options: BloomOptions): BloomKind {
  const { signalling = 'websocket', cluster } = options;
  const plain = cluster === undefined ? NAMES[signalling] : CLUSTERS[cluster];
  const name = `${plain}${options.spans === true ? ' spanning' : ''}${options.main === undefined ? '' : ` (${options.main})`}`;
  const flags = [...options.nodeFlags, ...(options.spans === true ? [`--import=${acrossWorkers.href}`] : [])];
  return {
    name: options.workers === 1 ? name : `${name} (${options.workers} workers)`,
    unavailable: () => undefined,
    async start() {
      const folder = mkdtempSync(join(tmpdir(), 'bloom-bench-node-'));
      const startNode = async (node: string) => {
        const port = await freePort(address);
        const resources = join(folder, node);
        const metricsPort = await freePort(address);
        const server = new ServerProcess(process.execPath, [...flags, options.main ?? main], {
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
            ...(signalling === 'livekit' ? livekitNode : {}),
            ...(cluster === undefined ? {} : member(node, cluster)),
          },
        });
        await server.until(async () => (await fetch(`http://${address}:${port}/health`)).status === 401);
        return { port, server, resources };
      };
      const nodes = [await startNode('one')];
      const [{ port, server, resources }] = nodes as [Awaited<ReturnType<typeof startNode>>];
      if (cluster !== undefined) {
        nodes.push(await startNode('two'));
        await server.until(async () => {
          const headers = { authorization: `Bearer ${token}` };
          const answer = await fetch(`http://${address}:${port}/cluster`, { headers });
          return ((await answer.json()) as { data: { nodes: unknown[] } }).data.nodes.length === nodes.length;
        });
      }
      const clients = new BloomClients(port, signalling);
      let roomId = await clients.openRoom();

      return {
        name: this.name,
        pid: server.pid,
        pids: nodes.map((node) => node.server.pid),
        port,
        resources,
        room: () => roomId,
        publish: async (pc, publisher) => void (await clients.join(roomId, pc, publisher)),
        subscribe: async (pc) => void (await clients.join(roomId, pc)),
        visit: (pc) => clients.join(roomId, pc),
        nextRoom: async () => {
          roomId = await clients.openRoom();
        },
        close: async () => {
          clients.close();
          for (const node of nodes) await node.server.stop();
          rmSync(folder, { recursive: true, force: true });
        },
      };
    },
  };
}
