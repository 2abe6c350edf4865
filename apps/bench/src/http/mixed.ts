import { readFileSync } from 'node:fs';
import { cpuMicros, rss } from '../sfu/process.js';
import { Client, inParallel } from './client.js';
import { paced } from './paced.js';
import type { BenchNode } from './node.js';
import { latencyText, type Result, summary } from './result.js';

const ROOMS = 100;
const mebibytes = (bytes: number): number => bytes / 1024 / 1024;

/** Rooms and peers that the mixed load has created and will remove. */
class Mix {
  readonly #client: Client;
  readonly #peers: { roomId: string; peerId: string }[] = [];
  readonly #rooms: string[] = [];
  #step = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Makes one request. Of 100, 45 read a room, 40 add or remove peers, 10 rooms, 3 request health, 2 the list. */
  async next(): Promise<void> {
    const step = this.#step;
    this.#step += 1;
    const kind = (step * 37) % 100;
    const room = `room-${step % ROOMS}`;
    if (kind < 20) {
      const { data } = await this.#client.json(201, `POST /room/${room}/peer`, { type: 'webrtc', options: {} });
      this.#peers.push({ roomId: room, peerId: data.peer.id });
      return;
    }
    if (kind < 40) {
      const peer = this.#peers.shift();
      if (peer !== undefined) {
        await this.#client.json(204, `DELETE /room/${peer.roomId}/peer/${peer.peerId}`);
        return;
      }
    } else if (kind < 45) {
      const { data } = await this.#client.json(201, 'POST /room', { maxPeers: 10, videoCodec: 'vp8' });
      this.#rooms.push(data.room.id);
      return;
    } else if (kind < 50) {
      const gone = this.#rooms.shift();
      if (gone !== undefined) {
        await this.#client.json(204, `DELETE /room/${gone}`);
        return;
      }
    } else if (kind < 53) {
      await this.#client.json(200, 'GET /health');
      return;
    } else if (kind < 55) {
      await this.#client.json(200, 'GET /room');
      return;
    }
    await this.#client.json(200, `GET /room/${room}`);
  }
}

/** Runs `rate` requests per second for `seconds`. Latency counts from the moment each was due. */
export async function measureMixed(
  node: BenchNode,
  { rate, seconds }: { rate: number; seconds: number },
): Promise<Result[]> {
  const client = new Client(node.port);
  const mix = new Mix(client);
  try {
    await inParallel(ROOMS, 8, async (index) => {
      await client.json(201, 'POST /room', { roomId: `room-${index}` });
    });
    for (let warm = 0; warm < rate; warm += 1) await mix.next();

    const total = rate * seconds;
    const memory: number[] = [];
    const heap: Promise<number>[] = [];
    const quarter = Math.max(1, Math.floor(seconds / 4));
    const cpuBefore = cpuMicros(node.pid);
    const waitedBefore = waitedMs(node.pid);
    const { latencies, failures, elapsedMs } = await paced({
      rate,
      seconds,
      run: () => mix.next(),
      everySecond: () => {
        memory.push(rss(node.pid));
        if (memory.length % quarter === 0 && heap.length < 3) heap.push(node.liveHeap());
      },
    });
    const cores = (cpuMicros(node.pid) - cpuBefore) / (elapsedMs * 1_000);

    const waited = (waitedMs(node.pid) - waitedBefore) / elapsedMs;

    const live = (await Promise.all([...heap, node.liveHeap()])).map(mebibytes);
    const [before = Number.NaN, after = Number.NaN] = [live[1], live[3]];
    const residentMiB = [memory.slice(quarter, 2 * quarter), memory.slice(-quarter)].map((part) =>
      mebibytes(Math.max(...part)).toFixed(0),
    );
    const times = summary(latencies);
    const failed = failures.length === 0 ? '' : `, ${failures.length} FAILED (${String(failures[0])})`;
    return [
      {
        what: `${rate} mixed requests/s for ${seconds} s`,
        values: { ...times, rate: (total / elapsedMs) * 1_000, cores, waited, failures: failures.length },
        measured: `${latencyText(times)}, ${cores.toFixed(2)} cores, ${(waited * 100).toFixed(0)} % of the time kept from its core${failed}`,
        target: 'p99 < 50 ms on one core',
        met: times.p99 < 50 && failures.length === 0,
      },
      {
        what: 'memory of the node by quarters, second against last',
        values: { beforeMiB: before, afterMiB: after, grownMiB: after - before },
        measured: `heap without garbage at the end of each ${live.map((each) => each.toFixed(1)).join(', ')} MiB; resident at most ${residentMiB.join(' and ')} MiB`,
        target: 'flat: heap below 5 MiB more',
        met: after - before < 5,
      },
    ];
  } finally {
    client.close();
  }
}

/** Returns how long a process's main thread was ready to run while others had its core (`schedstat` of proc(5)). */
function waitedMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1_000_000;
  } catch {
    // The kernel does not record it.
    return Number.NaN;
  }
}
