// A third-party program as a WHIP or WHEP client. It ends with its standard input.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { repository } from '../harness/processes.js';

export class Program {
  readonly lines: string[] = [];
  readonly #child;
  readonly #waiting = new Set<() => void>();
  readonly #ended: Promise<void>;

  /** `file` is in this folder; `input` is piped into the program. */
  constructor([command, file]: readonly [string, string], args: readonly string[], input?: Readable) {
    this.#child = spawn(command, [join(repository, 'e2e', 'whip', file), ...args]);
    input?.pipe(this.#child.stdin);
    // The program may end before its input does.
    this.#child.stdin.on('error', () => {});
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        this.lines.push(line);
        for (const look of this.#waiting) look();
      });
    }
    this.#ended = new Promise((resolve) => this.#child.once('close', () => resolve()));
  }

  /** Resolves with the first matching line from line `from` on. */
  prints(form: RegExp, from = 0): Promise<string> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const line = this.lines.slice(from).find((one) => form.test(one));
        if (line === undefined) return;
        this.#waiting.delete(look);
        resolve(line);
      };
      this.#waiting.add(look);
      look();
      void this.#ended.then(() => reject(new Error(`no ${String(form)} in:\n${this.lines.join('\n')}`)));
    });
  }

  async end(): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
  }
}
