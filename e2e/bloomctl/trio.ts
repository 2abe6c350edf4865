// A cluster of three nodes on loopback with its own port mapper, and bloomctl as an operator runs it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freeTcpPort } from '@bloom/net/testing';
import { until } from '../cluster/until.js';
import { Api } from '../harness/api.js';
import { apiToken, type BloomNode, startNode } from '../harness/bloom-node.js';
import { repository } from '../harness/processes.js';

export const LABELS = ['a', 'b', 'c'] as const;
export type Label = (typeof LABELS)[number];

/** Secrets that must never be shown. */
export const secrets = {
  cookie: 'cookie-of-the-trio-41b0aa',
  keyBase: 'key-base-of-the-trio-9a1e77',
  webhook: 'hook-secret-c0ffee',
  s3: 's3-secret-77+/==ab',
  sipPassword: 'sip-password-of-a-phone-31',
};

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  readonly ms: number;
}

export interface Running {
  readonly child: ChildProcess;
  readonly out: () => string;
  readonly err: () => string;
  readonly ended: Promise<Ran>;
}

export class Trio {
  private constructor(
    readonly nodes: Readonly<Record<Label, BloomNode>>,
    readonly mapperPort: number,
    readonly folder: string,
  ) {}

  static async start(env: Partial<Record<Label, Readonly<Record<string, string>>>> = {}): Promise<Trio> {
    const mapperPort = await freeTcpPort();
    const folder = mkdtempSync(join(tmpdir(), 'bloomctl-e2e-'));
    const cookieFile = join(folder, 'cookie');
    writeFileSync(cookieFile, `${secrets.cookie}\n`);
    chmodSync(cookieFile, 0o600);
    copyFileSync(cookieFile, join(folder, '.bloom-cookie'));
    chmodSync(join(folder, '.bloom-cookie'), 0o600);
    // One after the other, because the first starts the port mapper.
    const nodes: Partial<Record<Label, BloomNode>> = {};
    try {
      for (const label of LABELS) {
        nodes[label] = await startNode({ env: { ...settings(label, mapperPort), ...env[label] } });
      }
    } catch (error) {
      for (const node of Object.values(nodes)) await node.stop();
      await endMapper(mapperPort);
      throw error;
    }
    const trio = new Trio(nodes as Record<Label, BloomNode>, mapperPort, folder);
    await until('the cluster is complete', async () =>
      (await Promise.all(LABELS.map((label) => trio.count(label)))).every((count) => count === 3),
    );
    return trio;
  }

  api(label: Label): Api {
    return new Api(this.nodes[label].url);
  }

  name(label: Label): string {
    return `${label}@127.0.0.1`;
  }

  /** `line` is method and path, such as `GET /room`. */
  async request(label: Label, line: string, body?: unknown) {
    const [method = '', path = ''] = line.split(' ');
    return await fetch(`${this.nodes[label].url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${apiToken}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  async json(label: Label, line: string, body?: unknown) {
    const answer = await this.request(label, line, body);
    // oxlint-disable-next-line typescript/no-explicit-any -- JSON of another program
    return (await answer.json()) as any;
  }

  /** `nodesInCluster` of the health report; undefined while the node does not answer. */
  async count(label: Label): Promise<number | undefined> {
    const report = await this.json(label, 'GET /health').catch(() => undefined);
    return report?.data?.distribution?.nodesInCluster;
  }

  /** Starts bloomctl against node `a` unless the arguments name another node. */
  start(args: readonly string[], options: { env?: Record<string, string>; input?: string } = {}): Running {
    const program = join(repository, 'apps', 'bloomctl', 'bin', 'bloomctl.js');
    if (!existsSync(join(repository, 'apps', 'bloomctl', 'dist', 'bloomctl.js'))) {
      throw new Error('bloomctl is not built: node scripts/setup.mjs');
    }
    const started = performance.now();
    const child = spawn(process.execPath, [program, ...args], {
      cwd: this.folder,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: this.folder,
        // Hides the user's sockets, because these tests are about ports and cookies.
        XDG_RUNTIME_DIR: this.folder,
        ERL_EPMD_PORT: String(this.mapperPort),
        BLOOM_NODE: this.name('a'),
        BLOOM_COOKIE: secrets.cookie,
        ...options.env,
      },
    });
    // A short command may have ended without reading its input: EPIPE.
    child.stdin.on('error', () => {});
    child.stdin.end(options.input ?? '');
    let out = '';
    let err = '';
    child.stdout.on('data', (data: Buffer) => (out += data.toString()));
    child.stderr.on('data', (data: Buffer) => (err += data.toString()));
    const ended = once(child, 'close').then(([code]) => ({
      code: code as number | null,
      out,
      err,
      ms: performance.now() - started,
    }));
    return { child, out: () => out, err: () => err, ended };
  }

  async run(args: readonly string[], options: { env?: Record<string, string>; input?: string } = {}): Promise<Ran> {
    return await this.start(args, options).ended;
  }

  /** Returns the document that a command prints; the command must exit with 0. */
  async document(...args: string[]) {
    const { code, out, err } = await this.run([...args, '--json']);
    if (code !== 0) throw new Error(`bloomctl ${args.join(' ')} ended with ${code}: ${err}`);
    // oxlint-disable-next-line typescript/no-explicit-any -- the tests check it against its schema
    return JSON.parse(out) as any;
  }

  async stop(): Promise<void> {
    await Promise.all(Object.values(this.nodes).map((node) => node.stop()));
    await endMapper(this.mapperPort);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Returns the settings of a node of the trio. */
export function settings(label: Label, mapperPort: number): Record<string, string> {
  return {
    JF_SERVER_API_TOKEN: apiToken,
    JF_SECRET_KEY_BASE: secrets.keyBase,
    JF_WEBHOOK_SECRET: secrets.webhook,
    JF_S3_BUCKET: 'bucket',
    JF_S3_REGION: 'region',
    JF_S3_ACCESS_KEY_ID: 'AKIDSTORAGE5577',
    JF_S3_SECRET_ACCESS_KEY: secrets.s3,
    JF_SIP_USED: 'true',
    JF_SIP_IP: '127.0.0.1',
    JF_MEDIA_WORKERS: '1',
    JF_DIST_ENABLED: 'true',
    JF_DIST_MODE: 'name',
    JF_DIST_IP: '127.0.0.1',
    JF_DIST_NODE_NAME: `${label}@127.0.0.1`,
    JF_DIST_NODES: LABELS.map((other) => `${other}@127.0.0.1`).join(' '),
    JF_DIST_COOKIE: secrets.cookie,
    ERL_EPMD_PORT: String(mapperPort),
  };
}

/** Ends the port mapper that the nodes leave running, once no node is registered. */
async function endMapper(port: number): Promise<void> {
  const ask = (): Promise<string | undefined> =>
    new Promise((resolve) => {
      let text = '';
      const socket = connect({ port, host: '127.0.0.1', timeout: 2_000 }, () => socket.end(Buffer.from([0, 1, 107])));
      socket.on('data', (data) => (text += data.toString('latin1')));
      socket.on('timeout', () => socket.destroy());
      socket.on('error', () => {});
      socket.on('close', () => resolve(text === '' ? undefined : text));
    });
  await until('the port mapper is gone', async () => (await ask()) !== 'NO', { limitMs: 5_000 });
}
