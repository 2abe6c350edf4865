/**
 * `npm run bench:data -- [--messages 10000] [--bytes 1024] [--pps 20000] [--idle 500]`: cost of data channel messages
 * for the node and concurrent media, and of channels without messages. Exits with status 1 if a target is missed.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { type Figures, figuresAt, row } from '../load/figures.js';
import { Rooms, sleep } from '../load/rooms.js';
import { printTable, printVerdict } from '../report.js';
import { median, quantile } from '../sfu/measure.js';
import { enterPrivateNetwork } from '../sfu/private-network.js';
import { cpuMicros, NODE_FLAGS } from '../sfu/process.js';
import { bloom } from '../sfu/servers/bloom.js';
import type { Heard, TalkersOptions } from './talkers.js';

const PEERS = 10;
const TURNS = 5;

const { values } = parseArgs({
  options: {
    /** Messages per second that arrive at all clients of a room of ten together. */
    messages: { type: 'string', default: '10000' },
    bytes: { type: 'string', default: '1024' },
    /** Media packets per second sent by the same worker. */
    pps: { type: 'string', default: '20000' },
    idle: { type: 'string', default: '500' },
  },
});
enterPrivateNetwork();

/** Clients with channels, in a separate process. */
class Talkers {
  readonly #process: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#process = child;
  }

  static async join(options: TalkersOptions): Promise<Talkers> {
    const child = fork(new URL('./talkers.js', import.meta.url), [JSON.stringify(options)]);
    await once(child, 'message');
    return new Talkers(child);
  }

  /** Sets the rate at which each client sends. Returns what was heard until now. */
  async talk(perSecond: number): Promise<Heard> {
    const answer = once(this.#process, 'message') as Promise<[Heard]>;
    this.#process.send(perSecond);
    return (await answer)[0];
  }

  async end(): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.disconnect();
    await ended;
  }
}

/** Alternates media alone and media beside messages, so that both meet the same machine. */
async function talking(messages: number, bytes: number, pps: number): Promise<void> {
  const server = await bloom({ workers: 1, nodeFlags: NODE_FLAGS }).start('video');
  const rooms = new Rooms(server, { rooms: 1, subscribers: PEERS, kind: 'video', bytes: 1_200 });
  const talkers = await Talkers.join({ port: server.port, rooms: 1, perRoom: PEERS, bytes });
  const [alone, beside]: [Figures[], Figures[]] = [[], []];
  const heard: Heard = { sent: 0, received: 0, latenciesMs: [] };
  const latenciesMs: { alone: number[]; beside: number[] } = { alone: [], beside: [] };
  let seconds = 0;
  try {
    await rooms.open();
    const perPeer = messages / PEERS / (PEERS - 1);
    for (let turn = 0; turn < TURNS; turn += 1) {
      await talkers.talk(0);
      alone.push(await figuresAt(rooms, pps));
      latenciesMs.alone.push(...rooms.sink.latencies);
      await talkers.talk(perPeer);
      await sleep(2_000);
      await talkers.talk(perPeer);
      const from = performance.now();
      beside.push(await figuresAt(rooms, pps, { warmUpMs: 0 }));
      latenciesMs.beside.push(...rooms.sink.latencies);
      const { sent, received, latenciesMs: each } = await talkers.talk(0);
      seconds += (performance.now() - from) / 1_000;
      heard.sent += sent;
      heard.received += received;
      heard.latenciesMs.push(...each);
    }
  } finally {
    await talkers.end();
    await rooms.close();
    await server.close();
  }
  const middle = (figures: readonly Figures[], key: keyof Figures): number => median(figures.map((each) => each[key]));
  const cores = middle(beside, 'cores') - middle(alone, 'cores');
  const arrived = heard.received / heard.sent / (PEERS - 1);
  const rate = heard.received / seconds;
  printTable(`media at ${pps} packets/s out of one worker, alone and beside data`, [
    ...alone.map((figures) => ({ load: 'media alone', ...row(figures) })),
    ...beside.map((figures) => ({ load: `and ${rate.toFixed(0)} messages/s`, ...row(figures) })),
  ]);
  printTable(`messages of ${bytes} bytes through a room of ${PEERS}`, [
    {
      'messages/s': rate.toFixed(0),
      'delivered %': (arrived * 100).toFixed(2),
      'us/message': ((cores * 1e6) / rate).toFixed(1),
      cores: cores.toFixed(3),
      'p50 ms': quantile(heard.latenciesMs, 0.5).toFixed(2),
      'p99 ms': quantile(heard.latenciesMs, 0.99).toFixed(2),
    },
  ]);
  printVerdict('cores for the messages', cores, { must: 0.3, aim: 0.2 });
  printVerdict('messages that arrived', arrived, { must: 0.99, aim: 0.999, better: 'more' });
  const rise = quantile(latenciesMs.beside, 0.99) / quantile(latenciesMs.alone, 0.99);
  printVerdict('p99 of the media beside data, over alone', rise, { must: 1.3, aim: 1.1 });
}

async function idling(peers: number): Promise<void> {
  const server = await bloom({ workers: 1, nodeFlags: NODE_FLAGS }).start('video');
  try {
    const talkers = await Talkers.join({ port: server.port, rooms: peers / PEERS, perRoom: PEERS, bytes: 8 });
    // Wait for work left over from the joins.
    await sleep(10_000);
    const before = { cpu: cpuMicros(server.pid), at: performance.now() };
    await sleep(30_000);
    const cores = (cpuMicros(server.pid) - before.cpu) / 1_000 / (performance.now() - before.at);
    await talkers.end();
    printVerdict(`cores for ${peers} peers with a channel each and no traffic`, cores, { must: 0.05, aim: 0.03 });
  } finally {
    await server.close();
  }
}

await talking(Number(values.messages), Number(values.bytes), Number(values.pps));
await idling(Number(values.idle));
process.exit();
