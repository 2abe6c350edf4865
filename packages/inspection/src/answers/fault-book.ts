import type { Log } from '@bloom/log';
import { type Clock, Timer } from '@bloom/time';
import type { AnswerOf } from '../protocol/types.js';
import type { RoomsSource } from '../sources.js';

type Line = AnswerOf<'faults'>['faults'][number];

export interface Fault {
  kind: 'suspend' | 'link-cut' | 'move-fault' | 'log-level';
  target: string;
  tool: string;
  forMs: number;
  /** Undoes the fault when its time has passed or the node shuts down. */
  ended(): void;
}

/** Records the changes made by tools. The node undoes each of them automatically. */
export class FaultBook {
  readonly #options: { log: Log; clock: Clock; rooms: RoomsSource };
  readonly #running = new Map<string, Line & { ended: () => void; timer: Timer }>();

  constructor(options: { log: Log; clock: Clock; rooms: RoomsSource }) {
    this.#options = options;
  }

  /** Records a fault. An earlier one of the same kind and target is replaced without being undone. */
  begin({ kind, target, tool, forMs, ended }: Fault): void {
    const key = `${kind} ${target}`;
    this.#running.get(key)?.timer.stop();
    const { clock, log } = this.#options;
    const since = clock.wall();
    const timer = new Timer(clock);
    timer.start(forMs, () => {
      log.warn('inspection.undone', { kind, target, tool });
      this.#end(key);
    });
    this.#running.set(key, { kind, target, tool, since, until: since + forMs, ended, timer });
  }

  /** Undoes a fault early. Returns false if there is none. */
  end(kind: Fault['kind'], target: string): boolean {
    return this.#end(`${kind} ${target}`);
  }

  list(): Line[] {
    const faults: Line[] = [...this.#running.values()].map(({ kind, target, tool, since, until }) => ({
      kind,
      target,
      tool,
      since,
      until,
    }));
    const order = this.#options.rooms.drainOrder.current;
    if (order !== undefined) {
      const { by: tool, since, until } = order;
      faults.push({ kind: 'drain', target: 'rooms', tool, since, until });
    }

    return faults;
  }

  /** Undoes all faults. */
  close(): void {
    for (const key of this.#running.keys()) this.#end(key);
  }

  #end(key: string): boolean {
    const fault = this.#running.get(key);
    if (fault === undefined) return false;
    fault.timer.stop();
    this.#running.delete(key);
    fault.ended();

    return true;
  }
}
