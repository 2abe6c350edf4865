import { afterEach, describe, expect, test } from '@jest/globals';
import { createRingMemory } from '../crossing/shared-ring.js';
import type { LinkEnd } from './ring-link.js';
import { WorkerLinks } from './worker-links.js';

/** A worker that keeps the ends of its links. */
class Ends {
  readonly ends = new Map<number, LinkEnd>();

  constructor(readonly id: number) {
    created.push(this);
  }

  link(end: LinkEnd): void {
    this.ends.set(end.worker, end);
  }

  unlink(worker: number): void {
    this.ends.get(worker)?.port.close();
    this.ends.delete(worker);
  }
}

const created: Ends[] = [];
afterEach(() => {
  for (const { ends } of created.splice(0)) for (const { port } of ends.values()) port.close();
});

const MIB = 1024 * 1024;
const workersOf = (count: number): Ends[] => Array.from({ length: count }, (_, id) => new Ends(id + 1));
/** Bytes for packets. Each direction of a link is the outgoing one of one end. */
const bytesOf = (workers: readonly Ends[]): number =>
  workers
    .flatMap(({ ends }) => [...ends.values()])
    .reduce((sum, { outgoing }) => sum + outgoing.byteLength - createRingMemory(0).byteLength, 0);

describe('the links between workers', () => {
  test.each([2, 8, 23])('links connect all of %i workers', (count) => {
    const links = new WorkerLinks(count);
    const workers = workersOf(count);
    const connected = workers.map((worker, at) => links.connect(worker, workers.slice(0, at)));
    expect(connected).not.toContain(false);
    expect(workers.map(({ ends }) => ends.size)).toEqual(workers.map(() => count - 1));
    expect(bytesOf(workers)).toBeLessThanOrEqual(64 * MIB);
  });

  test('links take no more than 64 MiB, however many workers there are', () => {
    const links = new WorkerLinks(64);
    const workers = workersOf(64);
    for (const worker of workers) for (const other of workers) if (worker.id < other.id) links.connect(worker, [other]);
    expect(bytesOf(workers)).toBe(64 * MIB);
  });

  test('links connect a worker to all others of a room or to none', () => {
    const links = new WorkerLinks(1_024);
    const [late, ...workers] = workersOf(300);
    expect(links.connect(late!, workers)).toBe(false);
    expect(late!.ends.size).toBe(0);
    expect(links.connect(late!, workers.slice(0, 256))).toBe(true);
    expect(links.connect(workers[0]!, [workers[1]!])).toBe(false);
    expect(links.connect(late!, workers.slice(0, 10))).toBe(true);
  });

  test('links leave their memory to others when a worker has ended', () => {
    const links = new WorkerLinks(1_024);
    const [doomed, ...workers] = workersOf(300);
    links.connect(doomed!, workers.slice(0, 256));
    links.ended(doomed!, workers);
    expect(links.connect(workers[0]!, [workers[1]!])).toBe(true);
  });
});
