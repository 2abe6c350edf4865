/** Virtual time for several machines in one process. Tasks run one by one, in an order determined by the seed. */
import type { Clock } from '@bloom/time';
import { Dice } from './dice.js';

/** Wall-clock time at the start of every history. */
const EPOCH_MS = Date.UTC(2026, 0, 1);
/** Longest virtual time from a request for a turn of the event loop to that turn. */
const TURN_MS = 0.05;

interface Task {
  atMs: number;
  readonly machine: Machine;
  readonly isTimer: boolean;
  readonly run: () => void;
  cancelled: boolean;
}

/** One process on one host. A restarted node runs on a new machine with the same host. */
export class Machine {
  alive = true;
  frozen = false;
  /** Number of times that it has been frozen. */
  freezes = 0;
  /** Offset that an operator or NTP has added to the system time. */
  wallOffsetMs = 0;
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
  #current: Machine | undefined;

  /** Runs `run` on the machine after `ms`, unless the machine has ended by then. */
  schedule(machine: Machine, ms: number, run: () => void): Task {
    return this.#add({ atMs: this.nowMs + Math.max(0, ms), machine, isTimer: false, run, cancelled: false });
  }

  clockOf(machine: Machine): Clock {
    return {
      now: () => this.nowMs,
      wall: () => EPOCH_MS + this.nowMs + machine.wallOffsetMs,
      setTimeout: (run, ms) =>
        // Node's timers take at least a millisecond.
        this.#add({ atMs: this.nowMs + Math.max(1, ms), machine, isTimer: true, run, cancelled: false }),
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

  /** Runs everything that is due within the next `ms`. */
  async run(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms;
    const native = { setImmediate: globalThis.setImmediate, clearImmediate: globalThis.clearImmediate };
    const turn = (): Promise<void> => new Promise((resolve) => void native.setImmediate(resolve));
    globalThis.setImmediate = ((run: (...args: unknown[]) => void, ...args: unknown[]) =>
      this.#current === undefined
        ? native.setImmediate(run, ...args)
        : this.#nextTurn(this.#current, () => run(...args))) as typeof setImmediate;
    globalThis.clearImmediate = (handle) => {
      if (handle !== undefined && 'atMs' in handle) (handle as unknown as Task).cancelled = true;
      else native.clearImmediate(handle);
    };
    try {
      for (let task = this.#queue[0]; task !== undefined && task.atMs <= untilMs; task = this.#queue[0]) {
        this.#queue.shift();
        this.nowMs = task.atMs;
        const { machine } = task;
        if (task.cancelled || !machine.alive) continue;
        if (machine.frozen) {
          machine.held.push(task);
          continue;
        }
        this.turns += 1;
        this.#current = machine;
        task.run();
        // Promises and `process.nextTick` belong to the task.
        await turn();
        this.#current = undefined;
      }
    } finally {
      this.#current = undefined;
      Object.assign(globalThis, native);
    }
    this.nowMs = untilMs;
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
