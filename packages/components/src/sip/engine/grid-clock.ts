import { FRAME_MS, FramePacer } from '@bloom/sip';
import { type Clock, systemClock } from '@bloom/time';

/**
 * One 20 ms beat for all calls of a process, because waking once for many calls is far cheaper than waking for each.
 * Time stands still between beats; stalls are made up for as far as `FramePacer` does.
 */
export class GridClock implements Clock {
  readonly #real: Clock;
  readonly #pacer = new FramePacer();
  readonly #afterBeat: () => void;
  #now = 0;
  #next = 1;
  readonly #timers = new Map<number, { at: number; run: () => void }>();
  #running = false;

  /** `afterBeat` runs after the timers of each beat. */
  constructor(afterBeat: () => void, real: Clock = systemClock) {
    this.#afterBeat = afterBeat;
    this.#real = real;
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#real.wall();
  }

  setTimeout(run: () => void, ms: number): number {
    const id = this.#next++;
    this.#timers.set(id, { at: this.#now + Math.max(ms, FRAME_MS), run });
    if (!this.#running) {
      this.#running = true;
      this.#beat();
    }
    return id;
  }

  clearTimeout(timer: unknown): void {
    this.#timers.delete(timer as number);
  }

  #beat(): void {
    for (let due = this.#pacer.due(this.#real.now()); due > 0; due -= 1) {
      this.#now += FRAME_MS;
      for (const [id, { at, run }] of this.#timers) {
        if (at > this.#now) continue;
        this.#timers.delete(id);
        run();
      }
    }
    this.#afterBeat();
    this.#real.setTimeout(() => this.#beat(), this.#pacer.wait(this.#real.now()));
  }
}
