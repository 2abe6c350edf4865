import type { Clock } from '@bloom/time';
import type { EnginePart } from './engine/engine-protocol.js';
import { HlsError, fileNotFound } from './errors.js';
import { MASTER_NAME, type PartPosition, StreamNames } from './names.js';
import {
  declaredDuration,
  growingPlaylistHead,
  masterPlaylist,
  mediaPlaylist,
  type PartEntry,
  type PastSegments,
  type PlaylistState,
  segmentLines,
} from './playlist.js';
import { HLS_PROFILE, SEGMENT_SECONDS } from './profile.js';
import { Waiters } from './waiters.js';

/** A part from the compositor. */
export interface StreamPart extends Omit<EnginePart, 'hasPicture' | 'data'> {
  data: Buffer;
}

/** Destination for the files of a stream. Calls take effect in order and never throw. */
export interface StreamFiles {
  /** Replaces an existing file. */
  write(name: string, data: Buffer): void;
  append(name: string, data: Buffer): void;
  remove(name: string): void;
}

/** Position a player waits for. */
export interface WaitPosition {
  segment: number;
  /** Undefined = the whole segment. */
  part: number | undefined;
}

export interface LiveStreamOptions {
  lowLatency: boolean;
  /** Seconds covered by the playlist; null = everything. */
  targetWindowSeconds: number | null;
  /** Keeps files after they leave the playlist, and lists them all at the end. */
  persistent: boolean;
  files: StreamFiles;
  /** Defaults to the names of the track `main`. */
  names?: StreamNames;
  clock: Clock;
}

interface Segment {
  sequence: number;
  name: string;
  startedAtMs: number;
  parts: PartEntry[];
  /** Fragments of the segment's parts; empty once it is no longer served from memory. */
  data: Buffer[];
  /** All fragments joined, while the completed segment is served from memory. */
  whole?: Buffer | undefined;
}

/** Number of segments served from memory. */
const IN_MEMORY = 4;
/** Files kept behind the window for players with an older playlist. */
const KEPT_BEHIND = 5;
/** Segments kept in full. Older ones that stay listed keep only their playlist lines, a few hundred bytes per 2 s. */
const KNOWN_IN_DETAIL = 10;
const MAX_WAIT_MS = 3 * SEGMENT_SECONDS * 1_000;
const MAX_SEGMENTS_AHEAD = 2;

/** One stream: its playlists, its segments in memory, and the players waiting for more. */
export class LiveStream {
  readonly #options: LiveStreamOptions;
  readonly #names: StreamNames;
  readonly #waiters: Waiters;
  #codecs = '';
  #init: Buffer | undefined;
  readonly #segments: Segment[] = [];
  /** Index in `segments` of the first listed segment. */
  #firstListed = 0;
  /** Listed segments older than `segments`, for streams that list everything now or at their end. */
  readonly #past: PastSegments = { count: 0, lines: '' };
  #open: Segment | null = null;
  #ended = false;
  #hidden = false;
  #texts = new Map<string, Buffer>();

  constructor(options: LiveStreamOptions) {
    this.#options = options;
    this.#names = options.names ?? new StreamNames();
    this.#waiters = new Waiters(MAX_WAIT_MS, options.clock);
  }

  get lowLatency(): boolean {
    return this.#options.lowLatency;
  }

  /** True once a player can start. */
  get hasPlaylist(): boolean {
    return this.#segments.length > 0;
  }

  started(init: Buffer, codecs: string): void {
    this.#init = init;
    this.#codecs = codecs;
  }

  append(part: StreamPart): void {
    if (this.#ended) return;
    const { segment: sequence, frames, independent, data } = part;
    this.#open ??= {
      sequence,
      name: this.#names.segment(sequence),
      startedAtMs: part.startedAtMs,
      parts: [],
      data: [],
    };
    const name = this.#names.part(sequence, this.#open.parts.length);
    this.#open.parts.push({ name, frames, independent });
    this.#open.data.push(data);
    if (part.last) this.#completeSegment();
    this.#texts.clear();
    this.#waiters.wake();
  }

  /** Ends the stream by completing the open segment and the playlist. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#open !== null) this.#completeSegment();
    if (this.#options.persistent) this.#firstListed = 0;
    this.#texts.clear();
    if (this.hasPlaylist) this.#writeWholePlaylists();
    this.#waiters.wake();
  }

  /** Stops serving players; parts that still arrive are written to the files. */
  hide(): void {
    this.#hidden = true;
    this.#waiters.wake();
  }

  /**
   * Returns the newest playlist once the position exists.
   * @throws HlsError
   */
  async playlistAt(name: string, position: WaitPosition, signal: AbortSignal): Promise<Buffer> {
    if (!this.lowLatency || !this.hasPlaylist || this.#hidden) throw fileNotFound(name);
    if (position.segment > this.#newest.segment + MAX_SEGMENTS_AHEAD) {
      throw new HlsError('INVALID_NAME', `Segment ${position.segment} is too far ahead of ${name}`);
    }
    const wanted = normalised(position);
    await this.#waiters.until(() => this.#reached(wanted) || this.#ended || this.#hidden, name, signal);

    if (this.#hidden) throw fileNotFound(name);
    return this.#text(name.endsWith('_delta.m3u8') ? this.#names.delta : this.#names.media);
  }

  /**
   * Returns a part from memory, after waiting for it if it is the next one.
   * @throws HlsError
   */
  async part(name: string, signal: AbortSignal): Promise<Buffer> {
    const position = this.#names.positionOf(name);
    if (!this.lowLatency || position === undefined) throw fileNotFound(name);
    const found = this.#partInMemory(position);
    if (found !== undefined) return found;
    if (!this.#isNext(position)) throw fileNotFound(name);
    await this.#waiters.until(() => this.#reached(position) || this.#ended || this.#hidden, name, signal);

    const awaited = this.#partInMemory(position);
    if (awaited === undefined) throw fileNotFound(name);
    return awaited;
  }

  /** Returns a playlist, the header or a recent segment from memory; undefined when it must be read from disk. */
  inMemory(name: string): Buffer | undefined {
    if (this.#hidden) throw fileNotFound(name);
    if (name === MASTER_NAME || name === this.#names.media || (name === this.#names.delta && this.#options.lowLatency))
      return this.#text(name);
    if (name === this.#names.init) return this.#init;

    return this.#segments.slice(-IN_MEMORY).find((segment) => segment.name === name)?.whole;
  }

  /** Position of the next part. */
  get #newest(): PartPosition {
    if (this.#open !== null) return { segment: this.#open.sequence, part: this.#open.parts.length };

    return { segment: (this.#segments.at(-1)?.sequence ?? -1) + 1, part: 0 };
  }

  #reached({ segment, part }: WaitPosition): boolean {
    const newest = this.#newest;
    if (segment < newest.segment) return true;

    return part !== undefined && segment === newest.segment && part < newest.part;
  }

  /** True for the next part and, since the segment may end early, for the first part of the next segment. */
  #isNext({ segment, part }: PartPosition): boolean {
    const newest = this.#newest;
    if (this.#ended || this.#hidden) return false;
    if (segment === newest.segment) return part === newest.part || part === newest.part + 1;

    return segment === newest.segment + 1 && part === 0;
  }

  #partInMemory({ segment, part }: PartPosition): Buffer | undefined {
    if (this.#hidden) return undefined;
    const recent =
      this.#open === null ? this.#segments.slice(-IN_MEMORY) : [...this.#segments.slice(-IN_MEMORY), this.#open];

    return recent.find(({ sequence }) => sequence === segment)?.data[part];
  }

  #completeSegment(): void {
    const segment = this.#open!;
    const { files } = this.#options;
    this.#open = null;
    this.#segments.push(segment);
    segment.whole = Buffer.concat(segment.data);
    // The directory begins with the first segment, so a stream without segments leaves nothing behind.
    if (segment.sequence === 0 && this.#init !== undefined) files.write(this.#names.init, this.#init);
    files.write(segment.name, segment.whole);
    const old = this.#segments.at(-1 - IN_MEMORY);
    if (old !== undefined) {
      old.data = [];
      old.whole = undefined;
    }
    this.#slide();
    if (!this.#ended) this.#writePlaylists(segment);
  }

  #slide(): void {
    const { targetWindowSeconds, persistent, files } = this.#options;
    if (targetWindowSeconds === null) {
      while (this.#segments.length > KNOWN_IN_DETAIL) this.#toPast(this.#segments.shift()!);
      return;
    }
    let listed = this.#segments.slice(this.#firstListed).reduce((sum, segment) => sum + declaredDuration(segment), 0);
    // A player needs three segments to start, whatever the window.
    while (this.#segments.length - this.#firstListed > 3) {
      const without = listed - declaredDuration(this.#segments[this.#firstListed]!);
      if (without < targetWindowSeconds) break;
      listed = without;
      this.#firstListed += 1;
    }
    while (this.#firstListed > KEPT_BEHIND) {
      const oldest = this.#segments.shift()!;
      this.#firstListed -= 1;
      if (persistent) this.#toPast(oldest);
      else files.remove(oldest.name);
    }
  }

  #toPast(segment: Segment): void {
    this.#past.count += 1;
    this.#past.lines += segmentLines(segment);
  }

  #state(): PlaylistState {
    const { segment, part } = this.#newest;
    const { lowLatency, persistent, targetWindowSeconds } = this.#options;
    const listsAll = targetWindowSeconds === null || (persistent && this.#ended);

    return {
      lowLatency,
      initName: this.#names.init,
      past: listsAll && this.#past.count > 0 ? this.#past : null,
      segments: this.#segments.slice(this.#firstListed),
      open: this.#open,
      nextPart: this.#ended ? null : this.#names.part(segment, part),
      ended: this.#ended,
    };
  }

  #text(name: string): Buffer {
    if (!this.hasPlaylist) throw fileNotFound(name);
    let text = this.#texts.get(name);
    if (text === undefined) {
      text = Buffer.from(
        name === MASTER_NAME
          ? masterPlaylist({ codecs: this.#codecs, mediaPlaylist: this.#names.media })
          : mediaPlaylist(this.#state(), { delta: name === this.#names.delta }),
      );
      this.#texts.set(name, text);
    }

    return text;
  }

  /** Writes the playlists, so that the directory is complete if this process dies now. */
  #writePlaylists(newest: Segment): void {
    const { files, persistent, targetWindowSeconds } = this.#options;
    if (!persistent && targetWindowSeconds !== null) return this.#writeWholePlaylists();
    if (newest.sequence === 0) {
      files.write(MASTER_NAME, this.#text(MASTER_NAME));
      files.write(this.#names.media, Buffer.from(growingPlaylistHead(this.#names.init)));
    }
    // Append a line: rewriting a playlist that lists everything would cost more with every segment.
    files.append(this.#names.media, Buffer.from(segmentLines(newest)));
  }

  #writeWholePlaylists(): void {
    const { files } = this.#options;
    this.#texts.clear();
    files.write(MASTER_NAME, this.#text(MASTER_NAME));
    files.write(this.#names.media, this.#text(this.#names.media));
  }
}

/** Maps a part number past the end of its segment to the first part of the next (RFC 8216bis, 6.2.5.2). */
function normalised({ segment, part }: WaitPosition): WaitPosition {
  return part !== undefined && part >= HLS_PROFILE.partsPerSegment
    ? { segment: segment + 1, part: 0 }
    : { segment, part };
}
