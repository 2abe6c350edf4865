import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ActorSystem, openActorSystem } from '@bloom/actors';
import { silentLog } from '@bloom/log';
import { MediaFileError } from '../errors.js';
import { fileBehaviour } from '../file-actor.js';
import { FILES_ACTOR } from '../file-messages.js';
import { LocalRecordings } from '../local-recordings.js';
import type { OwnRawRecordings, RawFile, RawList, RawMix, RawMixOrder } from '../raw-recordings.js';
import type { RawPlace, RawQuery, RawRecording } from '../raw-recordings.js';
import { BytesFile, type ServedFile } from '../served-file.js';
import type { LiveStreams, StreamRequest, TakenFiles } from '../stores.js';

/** The stream of one room, with files set by the test and requests that wait. */
class TestStream implements LiveStreams {
  readonly files = new Map<string, Buffer>();
  readonly asked: string[] = [];
  readonly stored: string[] = [];
  readonly reports: (TakenFiles & { node: string })[] = [];
  readonly aborted: string[] = [];
  readonly closed: string[] = [];
  /** The room has moved to another node. */
  hasLeft = false;
  readonly #waiting = new Map<string, () => void>();

  taken(report: TakenFiles, node: string): void {
    this.reports.push({ ...report, node });
  }

  async open({ fileName, blocking, stored, signal }: StreamRequest): Promise<ServedFile> {
    this.asked.push(fileName);
    if (stored === true) this.stored.push(fileName);
    if (blocking !== undefined) {
      await new Promise<void>((resolve, reject) => {
        this.#waiting.set(fileName, resolve);
        signal.addEventListener('abort', () => {
          this.aborted.push(fileName);
          reject(new MediaFileError('NOT_FOUND', `The client that waited for ${fileName} has disconnected`));
        });
      });
    }
    if (this.hasLeft) throw new MediaFileError('OWNER_UNREACHABLE', `The stream of ${fileName} has just moved`);
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

/** Recordings of tracks in memory, with one file each. */
class TestRawRecordings implements OwnRawRecordings {
  readonly listed: RawRecording[] = [];
  readonly content = new Map<string, Buffer>();

  add(roomId: string, part: string, more: Partial<RawRecording> = {}): void {
    const times = { startedAt: 0, uploadedAt: null };
    const sizes = { tracks: 1, seconds: 2, bytes: 3 };
    this.listed.push({ roomId, part, state: 'finished', ...sizes, ...times, isHere: false, ...more });
  }

  async list({ limit, roomId, after }: RawQuery): Promise<RawList> {
    const ofRoom = this.listed.filter((each) => roomId === undefined || each.roomId === roomId);
    const found = ofRoom.slice(1 + ofRoom.findIndex(({ part }) => part === after?.part));

    return { recordings: found.slice(0, limit), isWhole: found.length <= limit };
  }

  async open({ roomId, part, fileName }: RawFile): Promise<ServedFile> {
    const bytes = this.content.get(`${roomId}/${part}/${fileName}`);
    if (bytes === undefined) throw new MediaFileError('NOT_FOUND', `File not found: ${fileName}`);
    return new BytesFile(fileName, bytes);
  }

  async remove(place: RawPlace): Promise<void> {
    const at = this.listed.findIndex(({ roomId, part }) => roomId === place.roomId && part === place.part);
    if (at < 0) throw new MediaFileError('NOT_FOUND', `Recording ${place.roomId}/${place.part} not found`);
    this.listed.splice(at, 1);
  }

  async mix(place: RawPlace, { layout = 'grid', width = 1_280, height = 720 }: RawMixOrder): Promise<RawMix> {
    const found = this.#find(place);
    if (found.mix !== undefined) throw new MediaFileError('IN_PROGRESS', 'it is already being mixed');
    found.mix = { state: 'queued', layout, width, height, requestedAt: 1, endedAt: null };

    return found.mix;
  }

  async removeMix(place: RawPlace): Promise<void> {
    const found = this.#find(place);
    if (found.mix === undefined) throw new MediaFileError('NOT_FOUND', 'there is no mix');
    delete found.mix;
  }

  #find(place: RawPlace): RawRecording {
    const found = this.listed.find(({ roomId, part }) => roomId === place.roomId && part === place.part);
    if (found === undefined) throw new MediaFileError('NOT_FOUND', `Recording ${place.roomId}/${place.part} not found`);

    return found;
  }
}

/** A node with its own files, which it serves to other nodes. */
export class TestNode {
  readonly stream = new TestStream();
  readonly system: ActorSystem = openActorSystem({ log: silentLog });
  readonly live = new Set<string>();
  frozen = false;
  recordings!: LocalRecordings;
  readonly raw = new TestRawRecordings();
  #directory = '';

  constructor(readonly name: string) {}

  async open(maxOpen = 1_000): Promise<this> {
    this.#directory = await mkdtemp(join(tmpdir(), 'bloom-cluster-files-'));
    this.recordings = new LocalRecordings({ directory: this.#directory, isLive: (id) => this.live.has(id) });
    const actor = this.system.spawn(
      fileBehaviour({ streams: this.stream, recordings: this.recordings, rawRecordings: this.raw, maxOpen }),
    );
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
