// Two nodes of one cluster on this machine, with their own port mapper.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freeTcpPort } from '@bloom/net/testing';
import { Api } from '../harness/api.js';
import { type BloomNode, startNode } from '../harness/bloom-node.js';
import { repository } from '../harness/processes.js';
import { makeSources } from './sources.js';

export interface Member extends BloomNode {
  readonly name: string;
  readonly api: Api;
  readonly resources: string;
}

export interface Pair {
  readonly one: Member;
  readonly two: Member;
  /** Creates a room on the second node through the first. */
  roomOnTwo(options?: Record<string, unknown>): Promise<string>;
  stop(): Promise<void>;
}

type Env = Readonly<Record<string, string>>;

/** `env` may differ between members; `prepare` fills a member's resources before it starts. */
export async function startPair(
  env: Env | ((alive: string) => Env) = {},
  prepare: (alive: string, resources: string) => Promise<void> = async () => {},
): Promise<Pair> {
  const port = String(await freeTcpPort());
  const main = join(repository, 'apps', 'port-mapper', 'dist', 'main.js');
  const mapper = spawn(process.execPath, [main], { env: { ERL_EPMD_PORT: port }, stdio: 'ignore' });
  const folder = mkdtempSync(join(tmpdir(), 'bloom-pair-'));
  const members: Member[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(members.map((member) => member.stop()));
    mapper.kill();
    if (mapper.exitCode === null) await once(mapper, 'exit');
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const alive of ['one', 'two']) {
      const resources = join(folder, alive);
      await makeSources(resources);
      await prepare(alive, resources);
      const name = `${alive}@127.0.0.1`;
      const node = await startNode({
        env: {
          JF_DIST_ENABLED: 'true',
          JF_DIST_MODE: 'name',
          JF_DIST_NODE_NAME: name,
          JF_DIST_NODES: 'one@127.0.0.1 two@127.0.0.1',
          JF_DIST_COOKIE: 'of a test',
          JF_DIST_IP: '127.0.0.1',
          ERL_EPMD_PORT: port,
          JF_RESOURCES_BASE_PATH: resources,
          JF_SECRET_KEY_BASE: 'of a test',
          ...(typeof env === 'function' ? env(alive) : env),
        },
      });
      members.push({ ...node, name, api: new Api(node.url), resources });
    }
    const [one, two] = members as [Member, Member];
    const deadline = Date.now() + 20_000;
    while ((await one.api.request('GET', '/health')).body.data.distribution.nodesInCluster !== 2) {
      if (Date.now() > deadline) throw new Error(`the nodes did not meet:\n${one.log()}`);
      await delay(50);
    }

    return {
      one,
      two,
      roomOnTwo: async (options = {}) => {
        for (;;) {
          const { status, body } = await one.api.request('POST', '/room', { videoCodec: 'h264', ...options });
          if (status !== 201) throw new Error(`no room: ${status} ${JSON.stringify(body)}`);
          if (body.data.service_address === two.host) return body.data.room.id;
          // An empty room weighs as much as any other, so the next one goes to the other node.
        }
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
