/** Virtual time for several machines in one process. Tasks run one by one, in an order determined by the seed. */
import type { Clock } from '@bloom/time';
import { Dice } from './dice.js';

/** Wall-clock time at the start of every history. */
const EPOCH_MS = Date.UTC(2026, 0, 1);
/** Longest virtual time from a request for a turn of the event loop to that turn. */
const TURN_MS = 0.05;

/** Tasks in one turn of the real event loop. */
const TASKS_PER_TURN = 64;

/** Most tasks of a history: 28 times as many as the longest one known, with standbys, has taken. */
const MAX_TURNS = 2_000_000;

/** A history that has run so many tasks that it never ends. */
export class EndlessHistory extends Error {}

interface Settling {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

class Task {
  readonly isTimer: boolean;
  readonly run: () => void;
  /** True for a timer that keeps its process alive. */
  isAwaited: boolean;
  cancelled = false;

  constructor(
    public atMs: number,
    readonly machine: Machine,
    { isTimer, run }: { isTimer: boolean; run: () => void },
  ) {
    this.isTimer = isTimer;
    this.isAwaited = isTimer;
    this.run = run;
  }

  /** As that of timers in Node. */
  unref(): void {
    this.isAwaited = false;
  }
}

/** One process on one host. A restarted node runs on a new machine with the same host. */
export class Machine {
  alive = true;
  frozen = false;
  /** Number of times that it has been frozen. */
  freezes = 0;
  /** Offset that an operator or NTP has added to the system time. */
  wallOffsetMs = 0;
  /** Longest time that one of its tasks takes, as on a busy processor. */
  slowMs = 0;
  /** When the task that it runs will be over. */
  busyUntilMs = 0;
  /** Tasks that became due while the machine was frozen. */
  readonly held: Task[] = [];
  lastTurnMs = 0;

  constructor(readonly host: string) {}
}

export class VirtualWorld extends Dice {
  /** Runs work that belongs to no machine, such as the network's. */
  readonly outside = new Machine('outside');
  nowMs = 0;
  /** Tasks run so far. */
  turns = 0;
  readonly #queue: Task[] = [];
  readonly #maxTurns: number;
  #current: Machine | undefined;

  constructor(seed: number, maxTurns = MAX_TURNS) {
    super(seed);
    this.#maxTurns = maxTurns;
  }

  /** Runs `run` on the machine after `ms`, unless the machine has ended by then. */
  schedule(machine: Machine, ms: number, run: () => void): Task {
    return this.#add(new Task(this.nowMs + Math.max(0, ms), machine, { isTimer: false, run }));
  }

  /** Runs work of a machine at the end of the current task of no machine, or as soon as the machine can. */
  enter(machine: Machine, run: () => void): void {
    if (machine.frozen || machine.busyUntilMs > this.nowMs) return void this.schedule(machine, 0, run);
    this.#begin(machine);
    run();
  }

  clockOf(machine: Machine): Clock {
    return {
      now: () => this.nowMs,
      wall: () => EPOCH_MS + this.nowMs + machine.wallOffsetMs,
      setTimeout: (run, ms) =>
        // Node's timers take at least a millisecond.
        this.#add(new Task(this.nowMs + Math.max(1, ms), machine, { isTimer: true, run })),
      clearTimeout: (handle) => {
        if (handle !== undefined) (handle as Task).cancelled = true;
      },
    };
  }

  /** Stops a machine, with all its timers and connections, until `thaw`. */
  freeze(machine: Machine): void {
    machine.frozen = true;
    machine.freezes += 1;
  }

  /** Resumes a frozen machine. Timers that are due run before everything else, as in Node. */
  thaw(machine: Machine): void {
    machine.frozen = false;
    const held = machine.held.splice(0);
    for (const task of [...held.filter(({ isTimer }) => isTimer), ...held.filter(({ isTimer }) => !isTimer)]) {
      task.atMs = this.nowMs;
      this.#add(task);
    }
  }

  /** Number of timers that keep the machine's process alive. */
  timersOf(machine: Machine): number {
    const isIts = (task: Task): boolean => task.machine === machine && task.isAwaited && !task.cancelled;

    return [...this.#queue, ...machine.held].filter(isIts).length;
  }

  /** Runs everything that is due within the next `ms`. Throws an `EndlessHistory` if that takes too many tasks. */
  async run(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms;
    const native = { setImmediate: globalThis.setImmediate, clearImmediate: globalThis.clearImmediate };
    globalThis.setImmediate = ((run: (...args: unknown[]) => void, ...args: unknown[]) =>
      this.#current === undefined
        ? native.setImmediate(run, ...args)
        : this.#nextTurn(this.#current, () => run(...args))) as typeof setImmediate;
    globalThis.clearImmediate = (handle) => {
      if (handle !== undefined && 'atMs' in handle) (handle as unknown as Task).cancelled = true;
      else native.clearImmediate(handle);
    };
    try {
      await new Promise<void>((resolve, reject) => this.#runTasks(untilMs, { ...native, resolve, reject }));
    } finally {
      this.#current = undefined;
      Object.assign(globalThis, native);
    }
    this.nowMs = untilMs;
  }

  /**
   * Runs each task in an immediate of its own, after which Node runs the promises and ticks that belong to the task. A
   * turn of the real event loop for each task would cost more than the task.
   */
  #runTasks(
    untilMs: number,
    { setImmediate, resolve, reject }: Pick<typeof globalThis, 'setImmediate'> & Settling,
  ): void {
    let isOver = false;
    const step = (): void => {
      if (isOver) return;
      try {
        isOver = !this.#runNext(untilMs);
        if (isOver) resolve();
      } catch (error) {
        isOver = true;
        reject(error);
      }
    };
    const turn = (): void => {
      for (let i = 0; i < TASKS_PER_TURN; i += 1) setImmediate(step);
      if (!isOver) setImmediate(turn);
    };
    turn();
  }

  /** Runs the next task that is due by then. Returns false if there is none. */
  #runNext(untilMs: number): boolean {
    this.#current = undefined;
    for (let task = this.#queue[0]; task !== undefined && task.atMs <= untilMs; task = this.#queue[0]) {
      this.#queue.shift();
      this.nowMs = task.atMs;
      const { machine } = task;
      if (task.cancelled || !machine.alive) continue;
      if (machine.frozen) machine.held.push(task);
      else if (machine.busyUntilMs > this.nowMs) {
        task.atMs = machine.busyUntilMs;
        this.#add(task);
      } else {
        if (this.turns === this.#maxTurns)
          throw new EndlessHistory(`the history has not ended after ${this.turns} tasks`);
        this.turns += 1;
        this.#begin(machine);
        task.run();
        return true;
      }
    }

    return false;
  }

  #begin(machine: Machine): void {
    if (machine.slowMs > 0) machine.busyUntilMs = this.nowMs + this.random() * machine.slowMs;
    this.#current = machine;
  }

  /** Gives the machine another turn of its event loop; turns of one machine keep their order. */
  #nextTurn(machine: Machine, run: () => void): Task {
    machine.lastTurnMs = Math.max(machine.lastTurnMs, this.nowMs) + this.random() * TURN_MS;
    return this.schedule(machine, machine.lastTurnMs - this.nowMs, run);
  }

  #add(task: Task): Task {
    let [low, high] = [0, this.#queue.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#queue[middle] as Task).atMs <= task.atMs) low = middle + 1;
      else high = middle;
    }
    this.#queue.splice(low, 0, task);
    return task;
  }
}
