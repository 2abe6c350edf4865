import { printVerdict, provenance } from '../report.js';
import { rss } from '../sfu/process.js';
import { bloom, type BloomOptions, type BloomServer } from '../sfu/servers/bloom.js';
import { HeapReports } from './heap-reports.js';
import { comeAndGo, Rooms, type Shape } from './rooms.js';

interface Reading {
  /** Heaps and buffers of all threads after a collection, in MiB. */
  heapMiB: number;
  rssMiB: number;
}

/** One server that reports the heaps of its threads. */
class Measured {
  readonly #shape: Shape;
  readonly #options: BloomOptions;
  readonly #reports = new HeapReports();
  #server: BloomServer | undefined;
  #rooms: Rooms | undefined;

  constructor(shape: Shape, options: BloomOptions) {
    this.#shape = shape;
    this.#options = options;
  }

  /** Starts with visitors that join and leave, so that code is compiled and tables are filled. */
  async open(warmUp: number): Promise<Rooms> {
    const nodeFlags = [...this.#options.nodeFlags, ...this.#reports.nodeFlags];
    this.#server = await bloom({ ...this.#options, nodeFlags }).start(this.#shape.kind);
    this.#rooms = new Rooms(this.#server, { ...this.#shape, rooms: 1, subscribers: 10 });
    await this.#rooms.open();
    await this.comeAndGo(warmUp);
    return this.#rooms;
  }

  async read(): Promise<Reading> {
    const { pid } = this.#server!;
    return { heapMiB: await this.#reports.read(pid), rssMiB: rss(pid) / 2 ** 20 };
  }

  comeAndGo(count: number): Promise<void> {
    return comeAndGo(this.#server!, count);
  }

  async close(): Promise<void> {
    await this.#rooms?.close();
    await this.#server?.close();
    this.#reports.close();
  }
}

/** Measures the memory of an idle peer, and what a thousand peers leave behind, each in a separate process. */
export async function memory(shape: Shape, options: BloomOptions, joins: number): Promise<void> {
  const crowd = 100;
  console.log(provenance());
  const idle = new Measured(shape, options);
  try {
    // No peer has left before, since its memory would be reused. These peers therefore also pay for compiled code.
    const rooms = await idle.open(0);
    const before = await idle.read();
    for (let i = 0; i < crowd; i += 1) await rooms.join();
    const after = await idle.read();
    const each = (key: keyof Reading) => ((after[key] - before[key]) * 1024) / crowd;
    console.log(`one idle peer of ${crowd}: ${each('heapMiB').toFixed(0)} KiB of heaps and buffers`);
    printVerdict('the same, resident memory', each('rssMiB'), { must: 450, aim: 250, unit: ' KiB' });
  } finally {
    await idle.close();
  }
  if (joins === 0) return;
  const coming = new Measured(shape, options);
  try {
    await coming.open(100);
    const before = await coming.read();
    await coming.comeAndGo(joins);
    const after = await coming.read();
    console.log(
      `heaps and buffers after ${joins} joins and leaves: ${before.heapMiB.toFixed(1)} -> ${after.heapMiB.toFixed(1)} MiB; ` +
        `RSS ${before.rssMiB.toFixed(0)} -> ${after.rssMiB.toFixed(0)} MiB`,
    );
    printVerdict('growth of heaps and buffers', (after.heapMiB / before.heapMiB - 1) * 100, {
      must: 5,
      aim: 1,
      unit: ' %',
    });
  } finally {
    await coming.close();
  }
}
