import { fork } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { type Clock, systemClock } from '@bloom/time';
import { ManualClock, until } from '@bloom/time/testing';
import type { ForkedProcess, ForkedProcessOptions } from './forked-process.js';
import { startDetached } from './launch.js';
import { Processes, type ProcessesOptions } from './processes.js';

/** Node.js starts in a third of a second, slower beside other tests. */
jest.setTimeout(60_000);

const LOOK_MS = 500;
/** Scheduling policies of Linux. */
const SCHED_OTHER = 0;
const SCHED_IDLE = 5;
const PROGRAMS = {
  echo: `process.on('message', ({ say }) => process.send(say)); process.send('up');`,
  gone: `process.exit(3);`,
  stubborn: `process.on('SIGTERM', () => {}); process.on('message', () => {}); process.send('up'); setInterval(() => {}, 1000);`,
  greedy: `process.send('up'); const all = []; setInterval(() => { for (let i = 0; i < 8; i++) all.push(Buffer.alloc(4 * 1024 * 1024, 1)); }, 10);`,
  sudden: `process.send('up'); setTimeout(() => { const all = []; for (;;) all.push(Buffer.alloc(4 * 1024 * 1024, 1)); }, 50);`,
  deaf: `process.send(process.pid, () => { for (;;); });`,
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bloom-processes-'));
  for (const [name, text] of Object.entries(PROGRAMS)) writeFileSync(join(folder, `${name}.mjs`), text);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

if (!existsSync('/usr/bin/setpriv')) process.stderr.write('*** setpriv is not installed: a test is SKIPPED. ***\n');

const entryOf = (name: keyof typeof PROGRAMS): URL => pathToFileURL(join(folder, `${name}.mjs`));
/** Field 41 of `/proc/<pid>/stat`; the second one is in parentheses. */
const policyOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[38]);
const isAlive = (pid: number): boolean => {
  try {
    // A process that its parent has not collected is a zombie.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

class World {
  readonly received: unknown[] = [];
  readonly crashes: string[] = [];
  readonly logged: [string, Record<string, unknown>][] = [];
  readonly children: ForkedProcess<object, unknown>[] = [];
  readonly processes: Processes;

  constructor(options: Partial<ProcessesOptions> = {}) {
    const write = (event: string, fields?: object): void => void this.logged.push([event, { ...fields }]);
    this.processes = new Processes({ log: { ...silentLog, info: write, warn: write }, ...options });
  }

  start(
    name: keyof typeof PROGRAMS,
    options: Partial<ForkedProcessOptions<unknown>> = {},
  ): ForkedProcess<object, unknown> {
    const child = this.processes.start<object, unknown>({
      kind: name,
      entry: entryOf(name),
      memoryMib: 512,
      onMessage: (message) => this.received.push(message),
      onCrash: (reason) => this.crashes.push(reason),
      ...options,
    });
    this.children.push(child);

    return child;
  }

  async end(): Promise<void> {
    for (const child of this.children) child.kill();
    await Promise.all(this.children.map(({ closed }) => closed));
  }
}

let world: World;
afterEach(() => world.end());

describe('silent process', () => {
  let clock: ManualClock;
  beforeEach(async () => {
    clock = new ManualClock();
    world = new World({ clock });
    world.start('echo', { hangMs: 5 * LOOK_MS });
    await until(() => world.received.length === 1);
  });
  const hear = async (say: string): Promise<void> => {
    await world.children[0]!.send({ say });
    await until(() => world.received.at(-1) === say);
  };

  test('kills a process that stays silent for `hangMs`, and leaves no timer behind', async () => {
    clock.advance(5 * LOOK_MS);
    await hear('a sign of life');
    clock.advance(5 * LOOK_MS);
    expect(world.crashes).toEqual([]);
    clock.advance(LOOK_MS);
    expect(world.crashes).toEqual(['it has sent nothing for 2500 ms']);
    await world.children[0]!.closed;
    expect(world.logged[0]).toMatchObject(['child.ended', { kind: 'echo', cause: 'hung' }]);
    await until(() => clock.pending === 0);
  });

  test('does not blame a process for a pause of the server', async () => {
    clock.advance(4 * LOOK_MS);
    clock.leap(60_000);
    await hear('here all the time');
    clock.advance(5 * LOOK_MS);
    expect(world.crashes).toEqual([]);
  });
});

describe('limits of a process', () => {
  /** Other tests may keep all cores busy for long, and such a process runs on idle ones only. */
  const untilBatchIsUp = (): Promise<number> => until(() => world.received.length === 1, 50_000);

  test("runs below the node's priority, as the first process that the kernel kills when memory runs out", async () => {
    world = new World();
    const { pid } = world.start('echo');
    await until(() => world.received.length === 1);
    expect(getPriority(pid)).toBe(Math.min(19, getPriority() + 5));
    expect(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8').trim()).toBe('800');
  });

  test('gets the lowest priority if nobody waits for it', async () => {
    world = new World();
    const { pid } = world.start('echo', { isBatch: true });
    await untilBatchIsUp();
    expect(getPriority(pid)).toBe(19);
  });

  test('runs only on idle cores if nobody waits for it', async () => {
    world = new World();
    const { pid } = world.start('echo', { isBatch: true });
    await untilBatchIsUp();
    expect(policyOf(pid!)).toBe(SCHED_IDLE);
  });

  test('competes with the node for cores if somebody waits for it', async () => {
    world = new World();
    const { pid } = world.start('echo');
    await until(() => world.received.length === 1);
    expect(policyOf(pid!)).toBe(SCHED_OTHER);
  });

  test('logs a process that ends immediately with its code, but keeps its last output out of the log', async () => {
    writeFileSync(join(folder, 'gone.mjs'), `process.stderr.write('rtsp://admin:secret@camera/'); process.exit(3);`);
    world = new World();
    await world.start('gone').closed;
    expect(world.crashes).toEqual(['it ended with code 3: rtsp://admin:secret@camera/']);
    expect(world.logged).toHaveLength(1);
    expect(world.logged[0]).toMatchObject(['child.ended', { cause: 'exit', reason: 'it ended with code 3' }]);
  });

  test('kills a process that ignores the request to end after the limit', async () => {
    world = new World();
    const child = world.start('stubborn');
    await until(() => world.received.length === 1);
    process.kill(child.pid!, 'SIGTERM');
    await child.finish({ type: 'end' }, 200);
    expect(isAlive(child.pid!)).toBe(false);
    expect(world.crashes).toEqual([]);
    expect(world.logged[0]).toMatchObject(['child.ended', { cause: 'asked' }]);
  });

  test('ends a process with growing memory at its limit, and logs how much it used', async () => {
    world = new World();
    await world.start('greedy', { memoryMib: 200, reservedMib: 2_000 }).closed;
    expect(world.crashes[0]).toMatch(/^it used \d+ MiB of memory, and may use 200$/);
    const [, fields] = world.logged[0]!;
    expect(fields).toMatchObject({ kind: 'greedy', cause: 'memory' });
    expect(fields['peakMib']).toBeGreaterThan(200);
    expect(fields['cpuSeconds']).toBeGreaterThan(0);
  });

  test("stops a process that allocates all memory before the next check by the kernel's limit", async () => {
    const clock: Clock = { ...systemClock, now: systemClock.now, setTimeout: () => 0, clearTimeout: () => undefined };
    world = new World({ clock });
    await world.start('sudden', { memoryMib: 300 }).closed;
    expect(world.crashes[0]).toMatch(/^it ended with (code 1|SIG)/);
    expect(world.logged[0]).toMatchObject(['child.ended', { cause: 'memory' }]);
  });

  const withSetpriv = existsSync('/usr/bin/setpriv') ? test : test.skip;
  withSetpriv('ends a hung process when its parent ends in any way [needs setpriv]', async () => {
    const parent = join(folder, 'parent.mjs');
    const built = new URL('../dist/index.js', import.meta.url).href;
    writeFileSync(
      parent,
      `import { Processes } from '${built}';
      const log = { info() {}, warn() {} };
      new Processes({ log }).start({ kind: 'deaf', entry: new URL('./deaf.mjs', import.meta.url), memoryMib: 512,
        onMessage: (pid) => process.send(pid), onCrash() {} });`,
    );
    world = new World();
    const child = fork(parent, { execArgv: [], env: {} });
    const orphan = await new Promise<number>((resolve) => child.once('message', (pid) => resolve(pid as number)));
    expect(isAlive(orphan)).toBe(true);
    child.kill('SIGKILL');
    await until(() => !isAlive(orphan));
  });
});

describe('a program that outlives the node', () => {
  /** Writes its process id, then how much memory it got, up to 600 MiB. */
  const GREEDY = `import { appendFileSync } from 'node:fs';
    const { OUT } = process.env;
    appendFileSync(OUT, process.pid + '\\n');
    const all = [];
    setInterval(() => {
      for (let i = 0; i < 25; i++) all.push(Buffer.alloc(1024 * 1024, 1));
      appendFileSync(OUT, all.length + '\\n');
      if (all.length >= 600) process.exit();
    }, 1);`;

  test('has its own memory limit', async () => {
    const [program, out] = [join(folder, 'detached.mjs'), join(folder, 'detached.out')];
    writeFileSync(program, GREEDY);
    writeFileSync(out, '');
    startDetached(program, { OUT: out }, 300);
    const lines = (): number[] => readFileSync(out, 'utf8').trim().split('\n').map(Number);
    await until(() => lines().length > 1);
    const [pid = 0] = lines();
    await until(() => !isAlive(pid));
    const [, ...taken] = lines();
    expect(Math.max(...taken)).toBeLessThan(300);
  });
});

describe('the start of many processes', () => {
  test('starts a few at a time, and eventually all of them', async () => {
    world = new World({ mostStarting: 4 });
    let most = 0;
    for (let i = 0; i < 100; i++) world.start('gone', { onCrash: () => undefined });
    expect(world.processes.counts).toEqual({ running: 4, waiting: 96, refused: 0 });
    const watch = setInterval(() => {
      most = Math.max(most, world.processes.counts.running);
    }, 5);
    await Promise.all(world.children.map(({ closed }) => closed));
    clearInterval(watch);
    expect(most).toBeLessThanOrEqual(4);
    expect(world.logged.filter(([event]) => event === 'child.ended')).toHaveLength(100);
  });

  test('lets one kind start while another waits', async () => {
    world = new World({ mostStarting: 1 });
    const order: string[] = [];
    for (const name of ['gone', 'gone', 'gone', 'echo'] as const)
      world.start(name, { onCrash: () => order.push(name), onMessage: () => order.push(name) });
    await until(() => order.length === 4);
    expect(order).toEqual(['gone', 'gone', 'echo', 'gone']);
  });

  test('refuses processes beyond the limits with the reason, and logs few lines', async () => {
    world = new World({ mostStarting: 1, mostWaiting: 2 });
    for (let i = 0; i < 9; i++) world.start('echo');
    expect(world.crashes).toEqual([]);
    await until(() => world.crashes.length === 6);
    expect(world.crashes[0]).toBe('2 processes of this node already wait for their start');
    expect(world.logged.map(([event, { refused }]) => [event, refused])).toEqual([
      ['child.refused', 1],
      ['child.refused', 2],
      ['child.refused', 4],
    ]);
    await world.end();
    expect(world.processes.counts).toEqual({ running: 0, waiting: 0, refused: 6 });
  });

  test('refuses a process while the maximum is running', async () => {
    world = new World({ most: 1 });
    world.start('echo');
    world.start('echo');
    await until(() => world.crashes.length === 1);
    expect(world.crashes[0]).toBe('1 processes already run on this node');
  });

  test('logs a process that waited long for its turn', async () => {
    const clock = new ManualClock();
    world = new World({ mostStarting: 1, clock });
    const first = world.start('stubborn', { onMessage: () => undefined });
    world.start('echo');
    // The first process has not sent anything yet, and keeps its place for 10 s.
    clock.advance(5_000);
    first.kill();
    await until(() => world.received.length === 1);
    expect(world.logged).toContainEqual(['child.start_delayed', { kind: 'echo', waitedMs: 5_000, waiting: 0 }]);
  });

  test('delivers what was sent while a process waited to start', async () => {
    world = new World({ mostStarting: 1 });
    world.start('echo');
    const second = world.start('echo');
    await second.send({ say: 'early' });
    await until(() => world.received.includes('early'));
    expect(world.received).toEqual(['up', 'up', 'early']);
  });
});
