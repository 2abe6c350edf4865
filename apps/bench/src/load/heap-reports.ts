import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const COLLECTIONS = 3;
/** Time limit for one report of all threads. */
const COLLECTION_MS = 700;

/** Requests the heap sizes of all threads of a server. */
export class HeapReports {
  readonly #folder = mkdtempSync(join(tmpdir(), 'bloom-memory-'));

  /** Flags for starting the server. */
  get nodeFlags(): string[] {
    const preload = new URL(`./heap-report.js?folder=${encodeURIComponent(this.#folder)}`, import.meta.url).href;

    return ['--expose-gc', `--import=${preload}`];
  }

  /** Returns the heaps and buffers of all threads after a collection, in MiB. */
  async read(pid: number): Promise<number> {
    for (let round = 0; round < COLLECTIONS; round += 1) {
      process.kill(pid, 'SIGUSR2');
      await new Promise((done) => setTimeout(done, COLLECTION_MS));
    }
    let bytes = 0;
    for (const name of readdirSync(this.#folder)) {
      const [heap, external] = readFileSync(join(this.#folder, name), 'utf8').split(' ').map(Number);
      bytes += (heap ?? 0) + (external ?? 0);
    }

    return bytes / 2 ** 20;
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
