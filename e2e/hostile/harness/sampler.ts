// Runs sampled-call.mjs: a call of two participants in a room of its own, which is counted packet by packet.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Api } from '../../harness/api.js';
import type { BloomNode } from '../../harness/bloom-node.js';

const MAX_GAP_MS = 200;
const MAX_LOSS = 0.01;
/** Loss of a single packet is below the resolution of an attack that lasts less than 100. */
const MIN_LOST = 1;

/** What the program reports. */
interface Sample {
  readonly received: number;
  readonly expected: number;
  /** Time for which nothing came although the sender sent, both programs ran, and the node's threads had processors. */
  readonly maxGapMs: number;
  /** The same since the last packet. */
  readonly silentMs: number;
}

export class SampledCall {
  readonly #program: ChildProcess;

  private constructor(program: ChildProcess) {
    this.#program = program;
  }

  /** Resolves once the listener has received a packet. */
  static async start({ url, pid }: BloomNode, api: Api): Promise<SampledCall> {
    const room = await api.createRoom();
    const tokens = [(await api.addPeer(room)).token, (await api.addPeer(room)).token];
    const path = fileURLToPath(new URL('./sampled-call.mjs', import.meta.url));
    const call = new SampledCall(fork(path, [url, String(pid), ...tokens], { execArgv: [] }));
    for (let waited = 0; (await call.#ask('report')).received === 0; waited += 1) {
      if (waited === 100) throw new Error('no packet of the sampled call has arrived');
      await delay(100);
    }

    return call;
  }

  /** The process that sends and listens. */
  get pid(): number {
    return this.#program.pid ?? 0;
  }

  /** Forgets what was missed so far. */
  async restart(): Promise<void> {
    await this.#ask('restart');
  }

  /** Returns what the listener has missed since the last restart, one sentence each. */
  async missed(): Promise<string[]> {
    const { received, expected, maxGapMs, silentMs } = await this.#ask('report');
    const lost = Math.max(0, expected - received);
    const gapMs = Math.max(maxGapMs, silentMs);
    process.stderr.write(`  another room: ${lost} of ${expected} packets lost, gap of ${gapMs.toFixed(0)} ms\n`);

    return [
      ...(expected === 0 || lost > Math.max(MIN_LOST, expected * MAX_LOSS)
        ? [`another room lost ${lost} of ${expected} packets`]
        : []),
      ...(gapMs > MAX_GAP_MS ? [`another room heard nothing for ${gapMs.toFixed(0)} ms`] : []),
    ];
  }

  stop(): void {
    this.#program.kill();
  }

  async #ask(request: 'restart' | 'report'): Promise<Sample> {
    const answered = once(this.#program, 'message') as Promise<[Sample]>;
    this.#program.send(request);

    return (await answered)[0];
  }
}
