import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ActorSystem, createActorSystem } from '@bloom/actors';
import { silentLog } from '@bloom/log';
import { MediaFileError } from '../errors.js';
import { fileBehaviour } from '../file-actor.js';
import { FILES_ACTOR } from '../file-messages.js';
import { LocalRecordings } from '../local-recordings.js';
import { BytesFile, type ServedFile } from '../served-file.js';
import type { LiveStreams, StreamRequest } from '../stores.js';

/** The stream of one room, with files set by the test and requests that wait. */
class TestStream implements LiveStreams {
  readonly files = new Map<string, Buffer>();
  readonly asked: string[] = [];
  readonly aborted: string[] = [];
  readonly closed: string[] = [];
  readonly #waiting = new Map<string, () => void>();

  async open({ fileName, blocking, signal }: StreamRequest): Promise<ServedFile> {
    this.asked.push(fileName);
    if (blocking !== undefined) {
      await new Promise<void>((resolve, reject) => {
        this.#waiting.set(fileName, resolve);
        signal.addEventListener('abort', () => {
          this.aborted.push(fileName);
          reject(new MediaFileError('NOT_FOUND', `Nobody waits for ${fileName} any more`));
        });
      });
    }
    const bytes = this.files.get(fileName);
    if (bytes === undefined) throw new MediaFileError('NOT_FOUND', `File not found: ${fileName}`);
    const file = new BytesFile(fileName, bytes);
    file.close = async () => void this.closed.push(fileName);

    return file;
  }

  release(fileName: string): void {
    this.#waiting.get(fileName)?.();
  }
}

/** A node with files of its own that it serves to other nodes. */
export class TestNode {
  readonly stream = new TestStream();
  readonly system: ActorSystem = createActorSystem({ log: silentLog });
  readonly live = new Set<string>();
  frozen = false;
  recordings!: LocalRecordings;
  #directory = '';

  constructor(readonly name: string) {}

  async open(maxOpen = 1_000): Promise<this> {
    this.#directory = await mkdtemp(join(tmpdir(), 'bloom-cluster-files-'));
    this.recordings = new LocalRecordings({ directory: this.#directory, isLive: (id) => this.live.has(id) });
    const actor = this.system.spawn(fileBehaviour({ streams: this.stream, recordings: this.recordings, maxOpen }));
    this.system.register(FILES_ACTOR, actor);
    return this;
  }

  async record(id: string, fileName: string, content: string | Buffer): Promise<void> {
    await mkdir(join(this.#directory, id), { recursive: true });
    await writeFile(join(this.#directory, id, fileName), content);
  }

  /** Writes a finished recording whose first segment starts at that time. */
  async finish(id: string, startedAt: string, content = ''): Promise<void> {
    await this.record(id, 'main.m3u8', `#EXTM3U\n#EXT-X-PROGRAM-DATE-TIME:${startedAt}\n${content}\n#EXT-X-ENDLIST\n`);
  }

  async ids(): Promise<string[]> {
    return (await this.recordings.ids()).toSorted();
  }

  async close(): Promise<void> {
    await this.system.close();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

export const bytesOf = (size: number): Buffer => Buffer.alloc(size, Buffer.from('0123456789abcdefg'));
