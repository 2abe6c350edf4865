import type { StreamNames } from './names.js';
import { changeLines, type PastSegments, type SegmentEntry } from './playlist.js';

/** A segment of the node that a stream has left, as its stored playlist lists it. */
export interface EarlierSegment extends SegmentEntry {
  /** Text in the playlist; so is the duration. */
  date: string;
  duration: string;
}

const MAP = /^#EXT-X-MAP:URI="(.{1,200})"$/;
const DATE = /^#EXT-X-PROGRAM-DATE-TIME:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/;
const DURATION = /^#EXTINF:(\d{1,3}\.\d{5}),$/;
/** Maximum number of lines of a segment, and of the head of a playlist. */
const MAX_LINES = 5;
const MAX_HEAD_LINES = 20;

/**
 * Reads the segments before the number `before` from a stored playlist of another node.
 * @throws Error for a playlist that no node writes, or one that ends earlier
 */
export function earlierSegments(playlist: string, names: StreamNames, before: number): EarlierSegment[] {
  const found: EarlierSegment[] = [];
  let [header, begins, date, duration]: [number | undefined, boolean, string?, string?] = [undefined, false];
  for (const line of playlist.split('\n', MAX_HEAD_LINES + MAX_LINES * before)) {
    if (line === '#EXT-X-DISCONTINUITY') begins = true;
    else if (line.startsWith('#EXT-X-MAP:')) header = names.headerOf(MAP.exec(line)?.[1] ?? '');
    else if (line.startsWith('#EXT-X-PROGRAM-DATE-TIME:')) date = DATE.exec(line)?.[1];
    else if (line.startsWith('#EXTINF:')) duration = DURATION.exec(line)?.[1];
    if (line === '' || line.startsWith('#')) continue;
    const sequence = names.sequenceOf(line);
    const startedAtMs = Date.parse(date ?? '');
    const last = found.at(-1)?.sequence;
    const isNext = sequence !== undefined && (last === undefined || sequence === last + 1);
    if (!isNext || header === undefined || duration === undefined || date === undefined || Number.isNaN(startedAtMs))
      throw new Error(`its playlist has an unexpected segment ${line.slice(0, 100)}`);
    if (sequence >= before) break;
    found.push({ sequence, name: line, parts: [], startedAtMs, header, begins, date, duration });
    [begins, date, duration] = [false, undefined, undefined];
  }
  const last = found.at(-1)?.sequence;
  if (last !== undefined && last !== before - 1) throw new Error(`its playlist ends with segment ${last}`);

  return found;
}

/** Returns how the segments are listed; undefined if there are none. */
export function pastOf(segments: readonly EarlierSegment[], names: StreamNames): PastSegments | undefined {
  const [first, last] = [segments[0], segments.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const lines = segments.map((segment, i) =>
    [
      ...changeLines(segment, segments[i - 1] ?? null, (header) => names.init(header)),
      `#EXT-X-PROGRAM-DATE-TIME:${segment.date}`,
      `#EXTINF:${segment.duration},`,
      `${segment.name}\n`,
    ].join('\n'),
  );

  return { count: segments.length, lines: lines.join(''), first, last };
}

/** Returns the listing of both, one after the other. */
export function joined(earlier: PastSegments | undefined, past: PastSegments): PastSegments {
  if (earlier === undefined) return past;
  const isOneHeader = earlier.last?.header === past.first?.header;

  return {
    count: earlier.count + past.count,
    lines: earlier.lines + (isOneHeader ? past.lines.replace(/^#EXT-X-MAP:.*\n/, '') : past.lines),
    first: earlier.first,
    last: past.last ?? earlier.last,
  };
}
