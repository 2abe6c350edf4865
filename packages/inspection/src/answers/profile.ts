import { InspectionError } from '../errors.js';
import type { Asker } from '../inspector/inspector.js';
import type { Stream } from '../inspector/stream.js';
import { startProfile, type RunningProfile } from '../process/profiler.js';
import type { ParsedStream } from '../protocol/types.js';
import type { InspectionSources } from '../sources.js';

/** Chunk size of a profile. */
const PIECE = 64 * 1024;

/** Takes profiles of this node's threads, one at a time. */
export class Profiles {
  readonly #sources: Pick<InspectionSources, 'engine' | 'self' | 'log'>;
  #taking = false;

  constructor(sources: Pick<InspectionSources, 'engine' | 'self' | 'log'>) {
    this.#sources = sources;
  }

  /** Profiles a thread for `forMs`, then sends the profile. @throws InspectionError BUSY, BAD_REQUEST */
  async feed({ what, forMs, thread }: ParsedStream<'profile'>, stream: Stream, { tool }: Asker): Promise<() => void> {
    const { engine, self, log } = this.#sources;
    if (this.#taking) throw new InspectionError('BUSY', `another profile of ${self} is being taken`);
    this.#taking = true;
    log.info('inspection.profile', { tool, what, forMs, thread });
    try {
      const worker = thread === 'main' ? null : Number(thread.slice('media-'.length));
      const running = await startProfile(what, worker, engine);
      let over = false;
      const timer = setTimeout(() => {
        over = true;
        void this.#send(running, stream);
      }, forMs);

      return () => {
        clearTimeout(timer);
        if (over) return;
        running.cancel();
        this.#taking = false;
      };
    } catch (error) {
      this.#taking = false;
      throw error;
    }
  }

  /** Never rejects. */
  async #send(running: RunningProfile, stream: Stream): Promise<void> {
    try {
      const bytes = Buffer.from(await running.finish());
      for (let at = 0; at < bytes.length; at += PIECE) {
        if (!(await stream.write({ bytes: bytes.subarray(at, at + PIECE) }))) return;
      }
      stream.end('complete');
    } catch (error) {
      stream.end('failed', (error as Error).message);
    } finally {
      this.#taking = false;
    }
  }
}
