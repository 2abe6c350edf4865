import { HLS_PROFILE, SEGMENT_SECONDS } from './profile.js';

/** One part of a segment, about 1/3 s. */
export interface PartEntry {
  name: string;
  frames: number;
  /** True if it starts with a key frame. */
  independent: boolean;
  bytes: number;
}

export interface SegmentEntry {
  /** Media sequence number, from 0. */
  sequence: number;
  name: string;
  parts: readonly PartEntry[];
  /** Capture time of the first frame in Unix milliseconds. */
  startedAtMs: number;
  /** Number of its header, which counts the moves of the room so far. */
  header: number;
  /** The first segment after a move. */
  begins: boolean;
}

/** Segments reduced to their playlist lines. */
export interface PastSegments {
  count: number;
  lines: string;
  /** The first and the last of them. */
  first: SegmentEntry | null;
  last: SegmentEntry | null;
}

export interface PlaylistState {
  lowLatency: boolean;
  /** Returns the name of a header. */
  initName(header: number): string;
  /** Listed before `segments`; null = nothing. */
  past: PastSegments | null;
  /** Complete segments to list, in order, covering at least the last six target durations. */
  segments: readonly SegmentEntry[];
  /** The growing segment; null before the first and after the end. */
  open: SegmentEntry | null;
  /** Name of the next part; null once the stream has ended. */
  nextPart: string | null;
  /** The next part is the first after a move: low-latency players must know before it is listed. */
  beginsNext: boolean;
  ended: boolean;
}

export const PLAYLIST_END = '#EXT-X-ENDLIST';

const PART_SECONDS = HLS_PROFILE.framesPerPart / HLS_PROFILE.framesPerSecond;
/** At least as long as any part. */
const PART_TARGET = Math.ceil(PART_SECONDS * 1_000) / 1_000;
/** At least six target durations (RFC 8216bis, 4.4.3.8). */
const SKIP_UNTIL = 6 * SEGMENT_SECONDS;
/** Parts are listed only for the last three target durations. */
const SEGMENTS_WITH_PARTS = 3;
const UNITS_PER_SECOND = 100_000;

/**
 * Returns the duration of the frames in units of 10 us, rounded down: a player promised more than it can buffer
 * requests the same parts over and over.
 */
function unitsOf(frames: number): number {
  return Math.floor((frames * UNITS_PER_SECOND) / HLS_PROFILE.framesPerSecond);
}

const segmentUnits = ({ parts }: SegmentEntry): number => parts.reduce((sum, part) => sum + unitsOf(part.frames), 0);
const seconds = (units: number): string => (units / UNITS_PER_SECOND).toFixed(5);

/** Returns the segment's duration in the playlist: the sum of its parts in seconds. */
export function declaredDuration(segment: SegmentEntry): number {
  return segmentUnits(segment) / UNITS_PER_SECOND;
}

/** Returns how many segments a delta playlist skips besides those of the past: those beyond the skip boundary. */
export function skippable({ segments, open }: Pick<PlaylistState, 'segments' | 'open'>): number {
  let behind = open === null ? 0 : segmentUnits(open);
  for (let i = segments.length - 1; i >= 0; i--) {
    if (behind >= SKIP_UNTIL * UNITS_PER_SECOND) return i + 1;
    behind += segmentUnits(segments[i]!);
  }

  return 0;
}

function partLine({ name, frames, independent }: PartEntry): string {
  return `#EXT-X-PART:DURATION=${seconds(unitsOf(frames))},URI="${name}"${independent ? ',INDEPENDENT=YES' : ''}`;
}

const timeLine = ({ startedAtMs }: SegmentEntry): string =>
  `#EXT-X-PROGRAM-DATE-TIME:${new Date(startedAtMs).toISOString()}`;

type InitName = PlaylistState['initName'];

/** Returns the lines for a complete segment after `before`, the one listed before it, without its parts. */
export function segmentLines(segment: SegmentEntry, before: SegmentEntry | null, initName: InitName): string {
  const lines = [...changeLines(segment, before, initName), timeLine(segment)];

  return `${[...lines, `#EXTINF:${seconds(segmentUnits(segment))},`, segment.name].join('\n')}\n`;
}

/** Returns the lines for what differs from the segment before. A map holds until the next one. */
export function changeLines(segment: SegmentEntry, before: SegmentEntry | null, initName: InitName): string[] {
  return [
    ...(segment.begins ? ['#EXT-X-DISCONTINUITY'] : []),
    ...(segment.header === before?.header ? [] : [`#EXT-X-MAP:URI="${initName(segment.header)}"`]),
  ];
}

/** Returns the head of an on-disk playlist to which segments are appended, from `first` on. */
export function growingPlaylistHead(first: SegmentEntry): string {
  return `${[...headLines(7), ...sequenceLines(first)].join('\n')}\n`;
}

/** The discontinuity sequence counts those before the first segment: its own is listed (RFC 8216, 4.3.3.3). */
function sequenceLines(first: SegmentEntry | null): string[] {
  const before = first === null ? 0 : first.header - (first.begins ? 1 : 0);

  return [
    `#EXT-X-MEDIA-SEQUENCE:${first?.sequence ?? 0}`,
    ...(before > 0 ? [`#EXT-X-DISCONTINUITY-SEQUENCE:${before}`] : []),
  ];
}

const headLines = (version: number): string[] => [
  '#EXTM3U',
  `#EXT-X-VERSION:${version}`,
  '#EXT-X-INDEPENDENT-SEGMENTS',
  `#EXT-X-TARGETDURATION:${SEGMENT_SECONDS}`,
];

/** Returns the media playlist (RFC 8216bis). `delta` skips old segments of a low-latency stream if there are any. */
export function mediaPlaylist(state: PlaylistState, { delta = false }: { delta?: boolean } = {}): string {
  const { past, segments, open, nextPart, ended, initName } = state;
  // Once ended, a low-latency stream is an ordinary recording.
  const lowLatency = state.lowLatency && !ended;
  const skipped = delta && lowLatency ? skippable(state) : 0;
  const lines = headLines(lowLatency ? 9 : 7);
  if (lowLatency) {
    const holdBack = (3 * PART_TARGET).toFixed(3);
    lines.push(
      `#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=${holdBack},CAN-SKIP-UNTIL=${SKIP_UNTIL.toFixed(1)}`,
      `#EXT-X-PART-INF:PART-TARGET=${PART_TARGET.toFixed(3)}`,
    );
  }
  const first = past?.first ?? segments[0] ?? open;
  if (ended && (first?.sequence ?? 0) === 0) lines.push('#EXT-X-PLAYLIST-TYPE:VOD');
  lines.push(...sequenceLines(first));
  // The map belongs to the first segment and is skipped along with it.
  if (skipped > 0) lines.push(`#EXT-X-SKIP:SKIPPED-SEGMENTS=${(past?.count ?? 0) + skipped}`);
  else if (past !== null) lines.push(past.lines.trimEnd());

  let before = past?.last ?? null;
  for (const [i, segment] of segments.entries()) {
    if (i >= skipped) {
      lines.push(...changeLines(segment, before, initName), timeLine(segment));
      if (lowLatency && i >= segments.length - SEGMENTS_WITH_PARTS) lines.push(...segment.parts.map(partLine));
      lines.push(`#EXTINF:${seconds(segmentUnits(segment))},`, segment.name);
    }
    before = segment;
  }
  if (lowLatency && open !== null && open.parts.length > 0) {
    lines.push(...changeLines(open, before, initName), timeLine(open), ...open.parts.map(partLine));
  }
  if (lowLatency && state.beginsNext) lines.push('#EXT-X-DISCONTINUITY');
  if (lowLatency && nextPart !== null) lines.push(`#EXT-X-PRELOAD-HINT:TYPE=PART,URI="${nextPart}"`);
  if (ended) lines.push(PLAYLIST_END);

  return `${lines.join('\n')}\n`;
}

export interface Rendition {
  /** Codecs in RFC 6381 form, comma-separated. */
  codecs: string;
  mediaPlaylist: string;
}

/** Returns the master playlist, where players start. */
export function masterPlaylist({ codecs, mediaPlaylist: uri }: Rendition): string {
  const { width, height, framesPerSecond, videoBitrateBps, audioBitrateBps } = HLS_PROFILE;
  const average = videoBitrateBps + audioBitrateBps;
  const attributes = [
    // Containers and key frames come on top of the encoders' bitrate.
    `BANDWIDTH=${Math.round(average * 1.3)}`,
    `AVERAGE-BANDWIDTH=${average}`,
    `CODECS="${codecs}"`,
    `RESOLUTION=${width}x${height}`,
    `FRAME-RATE=${framesPerSecond.toFixed(3)}`,
  ];

  return [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    '#EXT-X-INDEPENDENT-SEGMENTS',
    `#EXT-X-STREAM-INF:${attributes.join(',')}`,
    uri,
    '',
  ].join('\n');
}
