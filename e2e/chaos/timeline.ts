// What happened in a run of chaos, a line per event, in the form of a simulated history.
export class Timeline {
  readonly lines: string[] = [];
  readonly violations: string[] = [];
  readonly #startMs = performance.now();
  readonly #print: (line: string) => void;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  /** Time since the start, in ms. */
  get nowMs(): number {
    return performance.now() - this.#startMs;
  }

  note(text: string): void {
    this.lines.push(`${(this.nowMs / 1_000).toFixed(3)} ${text}`);
  }

  broken(rule: string): void {
    this.note(`BROKEN ${rule}`);
    this.violations.push(rule);
    this.#print(`BROKEN ${rule}`);
  }
}
