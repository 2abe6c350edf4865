import { MAX_STREAM_BYTES, type StreamProgress } from '@bloom/rooms';
import { type Clock, Timer } from '@bloom/time';
import type { EnginePart } from './engine/engine-protocol.js';
import { type EarlierSegment, joined, pastOf } from './earlier-segments.js';
import { HlsError, fileNotFound, movedAway } from './errors.js';
import type { FormerStream } from './former-stream.js';
import { MASTER_NAME, type PartPosition, StreamNames } from './names.js';
import {
  declaredDuration,
  growingPlaylistHead,
  masterPlaylist,
  mediaPlaylist,
  type PartEntry,
  type PastSegments,
  type PlaylistState,
  type SegmentEntry,
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
  /** The end of the stream that goes on here, because its room has moved. */
  former?: FormerStream;
  clock: Clock;
}

interface Segment extends SegmentEntry {
  parts: PartEntry[];
  /** Fragments of the segment's parts; empty once it is no longer served from memory. */
  data: Buffer[];
  /** All fragments joined, while the completed segment is served from memory. */
  whole?: Buffer | undefined;
}

/** Number of segments served from memory. */
const IN_MEMORY = 4;
/** Maximum number of segments that another node fetches to go on with the stream. */
const MOVED_SEGMENTS = 6;
/** Files kept behind the window for players with an older playlist. */
const KEPT_BEHIND = 5;
/** Segments kept in full. Older ones that stay listed keep only their playlist lines, a few hundred bytes per 2 s. */
const KNOWN_IN_DETAIL = 10;
/** Longest wait for the first part of a segment, which takes a third of a second: the room's clients wait as long. */
const FREEZE_MS = 400;
const MAX_WAIT_MS = 3 * SEGMENT_SECONDS * 1_000;
const MAX_SEGMENTS_AHEAD = 2;

/** One stream: its playlists, its segments in memory, and the players waiting for more. */
export class LiveStream {
  readonly #options: Omit<LiveStreamOptions, 'former'>;
  readonly #names: StreamNames;
  readonly #waiters: Waiters;
  /** Sequence number of the first segment made here. */
  readonly #base: number = 0;
  /** Number of the header made here. */
  readonly #header: number = 0;
  readonly #headers = new Map<number, Buffer>();
  #codecs = '';
  #hasWritten = false;
  /** Parts that become visible only if the stream does not move; null = they do at once. */
  #held: StreamPart[] | null = null;
  /** Set while a move waits for the next part: true freezes the stream, false gives the move up. */
  #freezing: ((frozen: boolean) => void) | undefined;
  #movedAway = false;
  readonly #segments: Segment[] = [];
  /** Index in `segments` of the first listed segment. */
  #firstListed = 0;
  /** Listed segments older than `segments`, for streams that list everything now or at their end. */
  readonly #past: PastSegments = { count: 0, lines: '', first: null, last: null };
  /** Segments of another node that are listed on the disk and at the end, but not to viewers of the live stream. */
  #earlier: PastSegments | undefined;
  #awaitsEarlier = false;
  #open: Segment | null = null;
  #ended = false;
  #hidden = false;
  #texts = new Map<string, Buffer>();

  constructor({ former, ...options }: LiveStreamOptions) {
    this.#options = options;
    this.#names = options.names ?? new StreamNames();
    this.#waiters = new Waiters(MAX_WAIT_MS, options.clock);
    const { files } = options;
    if (former === undefined) return;
    const { next, codecs, segments } = former.progress;
    const { earlier = [], isShared = false } = former.stored ?? {};
    if (isShared) this.#earlier = pastOf(earlier, this.#names);
    else this.#awaitsEarlier = earlier.length > 0;
    this.#codecs = codecs;
    this.#base = next;
    this.#header = (segments.at(-1)?.header ?? 0) + 1;
    for (const [header, data] of former.headers) {
      this.#headers.set(header, data);
      if (!isShared) files.write(this.#names.init(header), data);
    }
    for (const [i, { parts, ...segment }] of segments.entries()) {
      const sequence = next - segments.length + i;
      const whole = former.segments[i]!;
      const name = this.#names.segment(sequence);
      const entries = parts.map((part, n) => ({ ...part, name: this.#names.part(sequence, n) }));
      this.#segments.push({ ...segment, sequence, name, parts: entries, data: fragmentsOf(whole, parts), whole });
      // The growing one has been ended.
      if (!isShared || i === segments.length - 1) files.write(name, whole);
    }
    this.#writePlaylists();
  }

  get lowLatency(): boolean {
    return this.#options.lowLatency;
  }

  /** True once a player can start. */
  get hasPlaylist(): boolean {
    return this.#segments.length > 0;
  }

  started(init: Buffer, codecs: string): void {
    this.#headers.set(this.#header, init);
    this.#codecs = codecs;
  }

  append(part: StreamPart): void {
    if (this.#ended) return;
    if (this.#held !== null) return void this.#held.push(part);
    const { frames, independent, data } = part;
    const sequence = this.#base + part.segment;
    this.#open ??= {
      sequence,
      name: this.#names.segment(sequence),
      startedAtMs: part.startedAtMs,
      header: this.#header,
      begins: this.#header > 0 && part.segment === 0,
      parts: [],
      data: [],
    };
    const name = this.#names.part(sequence, this.#open.parts.length);
    this.#open.parts.push({ name, frames, independent, bytes: data.length });
    this.#open.data.push(data);
    if (part.last) this.#completeSegment();
    this.#texts.clear();
    this.#waiters.wake();
    this.#freezing?.(true);
  }

  /**
   * Shows viewers nothing new, so that another node can go on with what they have seen; or ends that. Between two
   * segments with low latency, players count the next one to this stretch: the next part is shown first.
   */
  freeze(frozen: boolean): Promise<void> {
    if (!frozen) this.#thaw();
    else if (this.#isBetween && this.#freezing === undefined) return this.#freezeSoon();
    else if (this.#freezing === undefined) this.#held ??= [];

    return Promise.resolve();
  }

  #freezeSoon(): Promise<void> {
    const limit = new Timer(this.#options.clock);

    return new Promise((done) => {
      this.#freezing = (frozen) => {
        limit.stop();
        this.#freezing = undefined;
        if (frozen) this.#held = [];
        done();
      };
      limit.start(FREEZE_MS, () => this.#freezing?.(true));
    });
  }

  #thaw(): void {
    this.#freezing?.(false);
    const held = this.#held ?? [];
    this.#held = null;
    for (const part of held) this.append(part);
  }

  /** True if players of low latency know the next segment, but nothing of it. */
  get #isBetween(): boolean {
    // A stretch that has made nothing yet is announced by its own discontinuity.
    const isNew = this.#header > 0 && this.#newest.segment === this.#base;

    return this.lowLatency && this.hasPlaylist && this.#open === null && !isNew;
  }

  /**
   * Returns what another node needs to go on with the stream; undefined if nobody can have seen anything of it. The
   * growing segment counts as complete.
   * @throws Error if it is frozen between two segments with low latency, when players already count the next one to
   *   this stretch, or before `adopt`
   */
  progress(): StreamProgress | undefined {
    if (!this.hasPlaylist) return undefined;
    if (this.#awaitsEarlier) throw new Error('not all files of its stream have come from its former node');
    if (this.#held !== null && this.#isBetween) throw new Error('its stream is between two segments');
    const listed = this.#segments.slice(this.#firstListed);
    if (this.#open !== null) listed.push(this.#open);
    const newest: Segment[] = [];
    let bytes = 0;
    for (const segment of listed.toReversed()) {
      bytes += segment.parts.reduce((sum, part) => sum + part.bytes, 0);
      if (bytes > MAX_STREAM_BYTES || newest.length >= MOVED_SEGMENTS) break;
      newest.unshift(segment);
    }

    return {
      track: this.#names.track,
      codecs: this.#codecs,
      next: listed.at(-1)!.sequence + 1,
      segments: newest.map(({ header, begins, startedAtMs, parts }) => ({
        header,
        begins,
        startedAtMs: Math.round(startedAtMs),
        parts: parts.map(({ frames, independent, bytes: size }) => ({ frames, independent, bytes: size })),
      })),
    };
  }

  /** Lists the segments of another node that have arrived on this one's disk. No others will. */
  adopt(arrived: readonly EarlierSegment[]): void {
    this.#awaitsEarlier = false;
    this.#earlier = pastOf(arrived, this.#names);
    if (this.#earlier === undefined) return;
    if (this.#ended) this.#writeWholePlaylists();
    else this.#options.files.write(this.#names.media, this.#growingPlaylist());
  }

  /** Ends the stream by completing the open segment and the playlist. */
  end(): void {
    if (this.#ended) return;
    this.#thaw();
    this.#ended = true;
    if (this.#open !== null) this.#completeSegment();
    if (this.#options.persistent) this.#firstListed = 0;
    this.#texts.clear();
    if (this.hasPlaylist) this.#writeWholePlaylists();
    this.#waiters.wake();
  }

  /**
   * Stops serving players; parts that still arrive are written to the files, except those of a stream that goes on at
   * another node.
   */
  hide({ movedAway = false } = {}): void {
    this.#hidden = true;
    this.#movedAway = movedAway;
    this.#freezing?.(false);
    if (movedAway) this.#ended = true;
    this.#waiters.wake();
  }

  /**
   * Returns the newest playlist once the position exists.
   * @throws HlsError
   */
  async playlistAt(name: string, position: WaitPosition, signal: AbortSignal): Promise<Buffer> {
    if (!this.lowLatency || !this.hasPlaylist || this.#hidden) throw this.#missing(name);
    if (position.segment > this.#newest.segment + MAX_SEGMENTS_AHEAD) {
      throw new HlsError('INVALID_NAME', `Segment ${position.segment} is too far ahead of ${name}`);
    }
    const wanted = normalised(position);
    await this.#waiters.until(() => this.#reached(wanted) || this.#ended || this.#hidden, name, signal);

    if (this.#hidden) throw this.#missing(name);
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
    if (!this.#isNext(position)) throw this.#missing(name);
    await this.#waiters.until(() => this.#reached(position) || this.#ended || this.#hidden, name, signal);

    const awaited = this.#partInMemory(position);
    if (awaited === undefined) throw this.#missing(name);
    return awaited;
  }

  /** Returns a playlist, the header or a recent segment from memory; undefined when it must be read from disk. */
  inMemory(name: string): Buffer | undefined {
    if (this.#hidden) throw this.#missing(name);
    if (name === MASTER_NAME || name === this.#names.media || (name === this.#names.delta && this.#options.lowLatency))
      return this.#text(name);
    for (const [header, data] of this.#headers) if (name === this.#names.init(header)) return data;
    // The other node fetches the growing segment.
    if (this.#held !== null && name === this.#open?.name) return Buffer.concat(this.#open.data);

    return this.#segments.find((segment) => segment.name === name)?.whole;
  }

  #missing(name: string): HlsError {
    return this.#movedAway ? movedAway(name) : fileNotFound(name);
  }

  /** Position of the next part. */
  get #newest(): PartPosition {
    if (this.#open !== null) return { segment: this.#open.sequence, part: this.#open.parts.length };

    return { segment: (this.#segments.at(-1)?.sequence ?? this.#base - 1) + 1, part: 0 };
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
    const init = segment.sequence === this.#base ? this.#headers.get(this.#header) : undefined;
    if (init !== undefined) files.write(this.#names.init(this.#header), init);
    files.write(segment.name, segment.whole);
    for (const old of this.#segments.slice(0, -IN_MEMORY)) {
      old.data = [];
      old.whole = undefined;
    }
    this.#slide();
    if (!this.#ended) this.#writePlaylists();
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
    const past = this.#past;
    past.count += 1;
    past.lines += segmentLines(segment, past.last, (header) => this.#names.init(header));
    past.first ??= segment;
    past.last = segment;
  }

  #state(): PlaylistState {
    const { segment, part } = this.#newest;
    const { lowLatency, persistent, targetWindowSeconds } = this.#options;
    const listsAll = targetWindowSeconds === null || (persistent && this.#ended);
    // The media sequence number of a live playlist must not decrease.
    const past = joined(this.#ended ? this.#earlier : undefined, this.#past);
    // Its header is not known yet.
    const isFirst = segment === this.#base && part === 0;

    return {
      lowLatency,
      initName: (header) => this.#names.init(header),
      past: listsAll && past.count > 0 ? past : null,
      segments: this.#segments.slice(this.#firstListed),
      open: this.#open,
      beginsNext: !this.#ended && isFirst && this.#header > 0,
      nextPart: this.#ended || isFirst ? null : this.#names.part(segment, part),
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
  #writePlaylists(): void {
    const { files, persistent, targetWindowSeconds } = this.#options;
    if (!persistent && targetWindowSeconds !== null) return this.#writeWholePlaylists();
    if (!this.#hasWritten) {
      this.#hasWritten = true;
      files.write(MASTER_NAME, this.#text(MASTER_NAME));
      return files.write(this.#names.media, this.#growingPlaylist());
    }
    // Append a line: rewriting a playlist that lists everything would cost more with every segment.
    const newest = this.#segments.at(-1)!;
    const lines = segmentLines(newest, this.#segments.at(-2) ?? this.#past.last, (header) => this.#names.init(header));
    files.append(this.#names.media, Buffer.from(lines));
  }

  #growingPlaylist(): Buffer {
    const past = joined(this.#earlier, this.#past);
    const all = [past.last, ...this.#segments];
    const initName = (header: number): string => this.#names.init(header);
    const lines = this.#segments.map((segment, i) => segmentLines(segment, all[i] ?? null, initName));

    return Buffer.from(growingPlaylistHead(past.first ?? this.#segments[0]!) + past.lines + lines.join(''));
  }

  #writeWholePlaylists(): void {
    const { files } = this.#options;
    this.#texts.clear();
    files.write(MASTER_NAME, this.#text(MASTER_NAME));
    files.write(this.#names.media, this.#text(this.#names.media));
  }
}

/** Cuts a segment into its parts. */
function fragmentsOf(whole: Buffer, parts: readonly { bytes: number }[]): Buffer[] {
  let end = 0;

  return parts.map(({ bytes }) => whole.subarray(end, (end += bytes)));
}

/** Maps a part number past the end of its segment to the first part of the next (RFC 8216bis, 6.2.5.2). */
function normalised({ segment, part }: WaitPosition): WaitPosition {
  return part !== undefined && part >= HLS_PROFILE.partsPerSegment
    ? { segment: segment + 1, part: 0 }
    : { segment, part };
}
