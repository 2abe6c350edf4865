// One node, a room with intruders, a room without, and a call in Chromium in each. The attacks must not disturb the
// calls.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import WebSocket from 'ws';
import { apiToken, type BloomNode, startNode } from '../../harness/bloom-node.js';
import { describeWith, type Need } from '../../harness/needs.js';
import type { Peer } from '../../harness/peer.js';
import { Stage } from '../../harness/stage.js';
import { livekitNode } from '../../livekit/participant.js';
import type { Attack, Ground } from './attack.js';
import { subscribe } from './backend.js';
import { Intruder } from './intruder.js';
import { Random } from './random.js';
import { SampledCall } from './sampler.js';
import { slowReader } from './slow-reader.js';

/** Longest allowed pause of a picture at ten frames a second, with browsers, node and attacker on two cores. */
const MAX_GAP_MS = 3_000;
/** Slowest allowed answer of `/health` during an attack, not counting time in which the node got no processor. */
const MAX_HEALTH_MS = 2_000;
const MAX_GROWTH_MB = 120;
/** The same with the processes that the node has forked: during an attack, and when it has been over for a while. */
const MAX_TREE_GROWTH_MB = 256;
const MAX_LASTING_MB = 64;
const FREED_MS = 30_000;
/** Time for V8 to collect its garbage by itself. */
const COLLECTED_MS = 5_000;
/** Time after an attack for its consequences to show. */
const SETTLE_MS = 500;
/** Descriptors that an attack may leave open in the node, such as sockets of clients that have not timed out. */
const MAX_LASTING_DESCRIPTORS = 100;
/** Time for the node to close the others. */
const CLOSED_MS = 10_000;
/** Log lines that no client may cause. */
const ALARMS =
  /media\.worker_|room\.crashed|RoomCrashed|node\.killed|\[error\]|MaxListenersExceeded|heap out of memory/;

const collector = new URL('./collect-garbage.mjs', import.meta.url);

interface Watch {
  readonly healthMs: readonly number[];
  readonly failures: readonly string[];
  readonly rssBeforeMb: number;
  readonly rssPeakMb: number;
  readonly treeBeforeMb: number;
  readonly treePeakMb: number;
  readonly treeMb: number;
}

interface Call {
  readonly room: string;
  readonly sender: Peer;
  readonly viewer: Peer;
  readonly track: string;
}

export interface Figures {
  healthMs: number[];
  maxGapMs: number;
  rssPeakMb: number;
  /** Of the node and its processes together. */
  treeGrowthMb: number;
}

export class Arena {
  readonly #stage: Stage;
  readonly #env: Readonly<Record<string, string>>;
  #relayTcpPort = 0;
  #metricsPort = 0;
  #monitor: Worker | undefined;
  #backend: WebSocket | undefined;
  #sampled: SampledCall | undefined;
  #calls: Call[] = [];
  #isWarm = false;
  /** Figures of all attacks together. */
  readonly figures: Figures = { healthMs: [], maxGapMs: 0, rssPeakMb: 0, treeGrowthMb: 0 };

  constructor(env: Readonly<Record<string, string>> = {}) {
    this.#env = env;
    this.#stage = new Stage({ node: () => this.#start() });
  }

  async #start(): Promise<BloomNode> {
    this.#relayTcpPort = await freeTcpPort();
    this.#metricsPort = await freeTcpPort();
    return startNode({
      nodeFlags: ['--expose-gc', `--import=${collector.href}`],
      env: {
        // One media worker for both rooms, so that a stall affects both calls.
        JF_MEDIA_WORKERS: '1',
        JF_WEBRTC_TURN_TCP_PORT: String(this.#relayTcpPort),
        JF_METRICS_PORT: String(this.#metricsPort),
        ...livekitNode,
        ...this.#env,
      },
    });
  }

  async open(): Promise<void> {
    this.#calls = [];
    this.#isWarm = false;
    await this.#stage.open();
    const { url, pid } = this.#stage.node;
    this.#backend = await subscribe(url, apiToken);
    this.#monitor = new Worker(new URL('./monitor.mjs', import.meta.url), {
      workerData: { url, pid, token: apiToken },
    });
    for (const [colour, names] of [
      ['red', ['ann', 'bob']],
      ['blue', ['carl', 'dora']],
    ] as const) {
      const call = await this.#stage.call(names);
      const peers = call as unknown as Record<string, Peer>;
      const [sender, viewer] = [peers[names[0]] as Peer, peers[names[1]] as Peer];
      const track = await sender.addVideo({ colour });
      await viewer.plays(track, colour);
      await Promise.all([sender.call('reportLossesOnly'), viewer.call('reportLossesOnly')]);
      this.#calls.push({ room: call.room, sender, viewer, track });
    }
    this.#sampled = await SampledCall.start(this.#stage.node, this.#stage.api);
  }

  async close(): Promise<void> {
    this.#sampled?.stop();
    this.#sampled = undefined;
    await this.#monitor?.terminate();
    this.#backend?.terminate();
    await this.#stage.close();
  }

  /** Returns the node's resident memory, in MiB. */
  rssMb(): number {
    const status = readFileSync(`/proc/${this.#stage.node.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024;
  }

  /** Returns the number of the node's open descriptors. */
  #descriptors(): number {
    return readdirSync(`/proc/${this.#stage.node.pid}/fd`).length;
  }

  /** Runs the attack and returns its damage, one sentence each. */
  async endure(attack: Attack, random: Random): Promise<string[]> {
    const releases: (() => void | Promise<void>)[] = [];
    const bystanders: Intruder[] = [];
    const from = this.#stage.node.log().length;
    const allowed = this.#descriptors() + MAX_LASTING_DESCRIPTORS;
    const harm: string[] = [];
    const hurt = (error: unknown): void => {
      harm.push(error instanceof Error ? (error.stack ?? error.message).slice(0, 2_000) : String(error));
    };
    await Promise.all(this.#calls.map(({ viewer, track }) => viewer.call('resetGap', track)));
    await this.#watched('restart');
    await this.#sampled?.restart();
    try {
      await attack.run(this.#ground(random, releases, bystanders));
      await delay(SETTLE_MS);
    } catch (error) {
      hurt(error);
    }
    try {
      harm.push(...((await this.#sampled?.missed()) ?? []));
      harm.push(...(await this.#harm(attack)));
    } catch (error) {
      hurt(error);
    }
    for (const { id, closeReason } of bystanders)
      if (closeReason !== undefined) harm.push(`the bystander ${id} was disconnected: ${closeReason}`);
    for (const release of releases.toReversed()) await release();
    for (const until = performance.now() + CLOSED_MS; this.#descriptors() > allowed && performance.now() < until; )
      await delay(100);
    if (this.#descriptors() > allowed) harm.push(`${this.#descriptors() - allowed} descriptors too many stay open`);
    harm.push(...(await this.#keptMemory()));
    const lines = this.#stage.node.log().slice(from).split('\n');
    harm.push(...lines.filter((line) => ALARMS.test(line)).map((line) => `the node logged: ${line.slice(0, 300)}`));
    return harm;
  }

  /**
   * Waits until the memory of the attack has been freed. Returns a sentence if it is not. The first attack also fills
   * heaps that any load fills, so what lasts counts from the second on.
   */
  async #keptMemory(): Promise<string[]> {
    const isFirst = !this.#isWarm;
    this.#isWarm = true;
    if (isFirst) return [];
    const from = performance.now();
    for (let isCollected = false; ; await delay(500)) {
      const { treeMb, treeBeforeMb } = await this.#watched('report');
      const keptMb = treeMb - treeBeforeMb;
      if (keptMb <= MAX_LASTING_MB) return [];
      const waitedMs = performance.now() - from;
      if (!isCollected && waitedMs > COLLECTED_MS) {
        isCollected = true;
        process.kill(this.#stage.node.pid, 'SIGUSR2');
      }
      if (waitedMs > FREED_MS) return [`${keptMb.toFixed(0)} MiB are still in use ${FREED_MS} ms later`];
    }
  }

  async #harm({ maxGapMs = MAX_GAP_MS, maxGrowthMb = MAX_GROWTH_MB }: Attack): Promise<string[]> {
    const { figures } = this;
    const harm: string[] = [];
    for (const { sender, viewer, track, room } of this.#calls) {
      const resumed = viewer.call('awaitFrames', track, 3).then(
        () => true,
        () => false,
      );
      if (!(await Promise.race([resumed, delay(maxGapMs, false, { ref: false })])))
        harm.push(`no more frames of ${sender.name} reach ${viewer.name}`);
      const report = await viewer.call('frames', track);
      figures.maxGapMs = Math.max(figures.maxGapMs, report.maxGapMs);
      if (report.maxGapMs > maxGapMs)
        harm.push(`the picture of ${sender.name} stood still for ${report.maxGapMs.toFixed(0)} ms at ${viewer.name}`);
      for (const peer of [sender, viewer]) {
        const lost = peer.events.find(
          ({ type }) => type === 'disconnected' || (type.startsWith('socket') && type !== 'socketOpen'),
        );
        if (lost !== undefined) harm.push(`${peer.name} was disconnected: ${JSON.stringify(lost)}`);
        harm.push(...peer.complaints().map((line) => `${peer.name}: ${line}`));
      }
      const { status } = await this.#stage.api.request('GET', `/room/${room}`);
      if (status !== 200) harm.push(`GET /room of ${sender.name} answered ${status}`);
    }
    if (this.#backend?.readyState !== WebSocket.OPEN) harm.push('the server websocket of the backend was closed');
    const { healthMs, failures, rssBeforeMb, rssPeakMb, ...tree } = await this.#watched('report');
    figures.healthMs.push(...healthMs);
    figures.rssPeakMb = Math.max(figures.rssPeakMb, rssPeakMb);
    harm.push(...failures);
    const slowest = Math.max(0, ...healthMs);
    if (slowest > MAX_HEALTH_MS) harm.push(`/health took ${slowest.toFixed(0)} ms`);
    const growthMb = rssPeakMb - rssBeforeMb;
    if (growthMb > maxGrowthMb)
      harm.push(`the node grew by ${growthMb.toFixed(0)} MiB, from ${rssBeforeMb.toFixed(0)}`);
    const treeGrowthMb = tree.treePeakMb - tree.treeBeforeMb;
    figures.treeGrowthMb = Math.max(figures.treeGrowthMb, treeGrowthMb);
    if (treeGrowthMb > MAX_TREE_GROWTH_MB)
      harm.push(`the node and its processes grew by ${treeGrowthMb.toFixed(0)} MiB`);
    if (process.env['BLOOM_E2E_KEEP'])
      process.stderr.write(`  /health up to ${slowest.toFixed(0)} ms, memory +${growthMb.toFixed(0)} MiB\n`);
    return harm;
  }

  #ground(random: Random, releases: (() => void | Promise<void>)[], bystanders: Intruder[]): Ground {
    const { node, api } = this.#stage;
    const room = this.#calls[0]?.room ?? '';
    const newPeer = async () => {
      const { id, token } = await api.addPeer(room);
      releases.push(() => api.request('DELETE', `/room/${room}/peer/${id}`).then(() => undefined));
      return token;
    };
    const join = async (host: string, metadata?: unknown) => {
      const joined = await Intruder.joined({ url: `http://${host}`, token: await newPeer() }, metadata);
      releases.push(() => joined.leave());
      return joined;
    };
    return {
      url: node.url,
      host: node.host,
      pid: node.pid,
      relayTcpPort: this.#relayTcpPort,
      metricsPort: this.#metricsPort,
      room,
      random,
      newToken: newPeer,
      intruder: (metadata) => join(node.host, metadata),
      bystander: async (bytesPerSecond) => {
        let host = node.host;
        if (bytesPerSecond !== undefined) {
          const proxy = await slowReader(node.host, bytesPerSecond);
          releases.push(() => proxy.close());
          host = proxy.host;
        }
        const bystander = await join(host, { name: 'bystander' });
        bystander.oblige();
        bystanders.push(bystander);
        return bystander;
      },
      after: (release) => void releases.push(release),
      api: (method, path, body) => api.request(method, path, body),
    };
  }

  async #watched(request: 'restart' | 'report'): Promise<Watch> {
    const monitor = this.#monitor as Worker;
    const answered = once(monitor, 'message') as Promise<[Watch]>;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    monitor.postMessage(request);
    return (await answered)[0];
  }
}

export interface HostileSuiteOptions {
  readonly needs?: readonly Need[];
  /** Returns the node's settings; called once, before it starts. */
  readonly env?: () => Promise<Readonly<Record<string, string>>>;
}

/** Runs one test per attack against one arena. */
export function hostileSuite(title: string, attacks: readonly Attack[], options: HostileSuiteOptions = {}): void {
  describeWith(['chromium', ...(options.needs ?? [])], title, () => {
    let arena: Arena;
    jest.setTimeout(120_000);
    beforeAll(async () => {
      arena = new Arena(await options.env?.());
      await arena.open();
    });
    afterAll(async () => {
      await arena?.close();
      const { treeGrowthMb } = arena?.figures ?? {};
      if (treeGrowthMb !== undefined) process.stderr.write(`\n${title}: at most ${treeGrowthMb.toFixed(0)} MiB more\n`);
    });
    for (const [at, attack] of attacks.entries()) {
      test(`keeps two calls running through ${attack.title}`, async () => {
        const harm = await arena.endure(attack, new Random(at));
        // Damage would otherwise be blamed on the attacks that follow.
        if (harm.length > 0) {
          await arena.close();
          await arena.open();
        }
        expect(harm).toEqual([]);
      });
    }
  });
}
