import type { Log } from '@bloom/log';
import { type Clock, Timer } from '@bloom/time';
import type { AnswerOf } from '../protocol/types.js';
import type { RoomsSource } from '../sources.js';

/** Maximum number of room ids in the state. */
const MAX_NAMED = 20;

type DrainState = AnswerOf<'drain'>;

export interface DrainOptions {
  rooms: RoomsSource;
  log: Log;
  clock: Clock;
  changed(event: 'draining' | 'undrained', reason: string): void;
}

/** Keeps new rooms away from a node until `stop` or a deadline. */
export class Drain {
  readonly #options: DrainOptions;
  #running: { since: number; deadlineAt: number | null; tool: string } | undefined;
  readonly #timer: Timer;

  constructor(options: DrainOptions) {
    this.#options = options;
    this.#timer = new Timer(options.clock);
  }

  /** The tool that started it, and the deadline; undefined when no tool did. */
  get order(): { tool: string; since: number; until: number | null } | undefined {
    if (this.#running === undefined) return undefined;
    const { tool, since, deadlineAt } = this.#running;

    return { tool, since, until: deadlineAt };
  }

  get state(): DrainState | null {
    const { rooms, clock } = this.#options;
    if (!rooms.draining) return null;
    const views = rooms.views();
    const components: Record<string, number> = {};
    for (const { type } of views.flatMap((view) => view.components)) components[type] = (components[type] ?? 0) + 1;

    return {
      // A node that shuts down drains as well; the start of that is not recorded.
      since: this.#running?.since ?? clock.wall(),
      deadlineAt: this.#running?.deadlineAt ?? null,
      rooms: rooms.load().rooms,
      peers: views.reduce((sum, { peers }) => sum + peers.length, 0),
      components,
      roomIds: views.slice(0, MAX_NAMED).map(({ id }) => id),
    };
  }

  start(deadlineMs: number | null, tool: string): DrainState {
    const { rooms, log, clock, changed } = this.#options;
    const wasDraining = rooms.draining;
    this.#timer.stop();
    if (deadlineMs !== null) this.#timer.start(deadlineMs, () => this.#over());
    const since = this.#running?.since ?? clock.wall();
    this.#running = { since, deadlineAt: deadlineMs === null ? null : clock.wall() + deadlineMs, tool };
    rooms.drain();
    log.warn('inspection.drain', { tool, deadlineMs, rooms: rooms.load().rooms });
    if (!wasDraining) changed('draining', tool);

    return this.state as DrainState;
  }

  stop(tool: string): boolean {
    const was = this.#running !== undefined;
    if (was) this.#options.log.warn('inspection.undrain', { tool });
    this.#end(tool);

    return was;
  }

  /** Forgets the order without undraining: the node shuts down. */
  close(): void {
    this.#timer.stop();
    this.#running = undefined;
  }

  #over(): void {
    const { log, rooms } = this.#options;
    log.warn('inspection.drain_over', { tool: this.#running?.tool, rooms: rooms.load().rooms });
    this.#end('deadline');
  }

  #end(reason: string): void {
    if (this.#running === undefined) return;
    this.#timer.stop();
    this.#running = undefined;
    this.#options.rooms.undrain();
    this.#options.changed('undrained', reason);
  }
}
