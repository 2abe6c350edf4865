/** H.265 in RTP, RFC 7798 without decoding order numbers. */
import { readU16 } from '../bytes.js';
import type { RtpView } from '../rtp-view.js';
import { shortenFiller } from './fillers.js';
import { FORWARDED_ONLY } from './forwarded-only.js';
import { EntryPoint, formatParameters, type PayloadFormat, type PayloadReader } from './payload-format.js';

/** NAL unit types of ITU-T H.265 table 7-1, and of RFC 7798 section 4.4. */
const UnitType = {
  /** Pictures of a temporal layer with which a receiver may begin to get it (TSA and STSA). */
  firstAccess: 2,
  lastAccess: 5,
  firstIrap: 16,
  lastIrap: 21,
  vps: 32,
  delimiter: 35,
  filler: 38,
  /** Supplemental information before the picture that it describes. */
  prefixSei: 39,
  aggregation: 48,
  fragment: 49,
} as const;

/** Length of a unit's header, and of that of a packet. */
const HEADER = 2;

const unitType = (header: number): number => (header >>> 1) & 0x3f;

/**
 * A receiver begins with the video parameter set, which precedes all other units of a key picture. Fillers are
 * shortened: encoders with a constant bitrate send mostly fillers.
 */
class H265Reader implements PayloadReader {
  readonly spatialLayer = 0;
  readonly endsLayer = false;
  readonly headerLength = 0;
  temporalLayer = 0;
  switchesTo = -1;
  hasPicture = true;
  entryPoint: EntryPoint = EntryPoint.no;

  read(view: RtpView): boolean {
    const { buffer, payloadStart, payloadEnd } = view;
    if (payloadEnd - payloadStart <= HEADER) return false;
    // The identifier counts from 1; 0 is forbidden (section 1.1.4).
    const temporalId = buffer[payloadStart + 1]! & 7;
    if (temporalId === 0) return false;
    this.temporalLayer = temporalId - 1;
    const shown = shownBy(view);
    this.hasPicture = shown !== Shows.nothing;
    this.entryPoint =
      shown === Shows.start ? EntryPoint.yes : shown === Shows.irap ? EntryPoint.ifFirst : EntryPoint.no;
    this.switchesTo = shown === Shows.access ? this.temporalLayer : -1;
    if (shown === Shows.nothing) shortenIfFiller(view);
    return true;
  }

  write(): number {
    return 0;
  }
}

/** What a packet shows, in rising order of importance. */
const Shows = {
  /** Only fillers, and units that stand before a picture and that receivers can do without. */
  nothing: 0,
  picture: 1,
  /** A receiver may begin with the picture's layer. */
  access: 2,
  irap: 3,
  start: 4,
} as const;

/** Reads the units of a packet; the most important one counts. */
function shownBy({ buffer, payloadStart, payloadEnd }: RtpView): number {
  const type = unitType(buffer[payloadStart]!);
  if (type === UnitType.fragment) {
    const header = buffer[payloadStart + HEADER]!;
    const shown = shownByUnit(header & 0x3f);
    const isStart = (header & 0x80) !== 0;
    return isStart || shown <= Shows.access ? shown : Shows.picture;
  }
  if (type !== UnitType.aggregation) return shownByUnit(type);

  let shown: number = Shows.nothing;
  let at = payloadStart + HEADER;
  while (at + 2 + HEADER <= payloadEnd) {
    const size = readU16(buffer, at);
    if (size < HEADER || at + 2 + size > payloadEnd) break;
    shown = Math.max(shown, shownByUnit(unitType(buffer[at + 2]!)));
    at += 2 + size;
  }
  return at < payloadEnd ? Math.max(shown, Shows.picture) : shown;
}

function shownByUnit(type: number): number {
  if (type === UnitType.vps) return Shows.start;
  if (type >= UnitType.firstIrap && type <= UnitType.lastIrap) return Shows.irap;
  if (type >= UnitType.firstAccess && type <= UnitType.lastAccess) return Shows.access;
  const showsNothing = type === UnitType.delimiter || type === UnitType.filler || type === UnitType.prefixSei;
  return showsNothing ? Shows.nothing : Shows.picture;
}

/** A filler has the temporal layer of its picture (ITU-T H.265 section 7.4.2.2), and is left out with it. */
function shortenIfFiller(view: RtpView): void {
  const { buffer, payloadStart } = view;
  const type = unitType(buffer[payloadStart]!);
  const isFragment = type === UnitType.fragment;
  if ((isFragment ? buffer[payloadStart + HEADER]! & 0x3f : type) !== UnitType.filler) return;
  if (!shortenFiller(view, HEADER, isFragment)) return;
  buffer[payloadStart] = (buffer[payloadStart]! & 0x81) | (UnitType.filler << 1);
}

/**
 * Returns why receivers might not decode the stream: another profile than Main, which is the default, or pictures in an
 * order that we do not read (sections 7.1 and 4.4.1).
 */
function obstacle(parameters: string): string | undefined {
  const all = formatParameters(parameters);
  const profile = all.get('profile-id') ?? '1';
  if (profile !== '1') return `profile-id ${profile}`;
  const difference = all.get('sprop-max-don-diff') ?? '0';

  return difference === '0' ? undefined : `sprop-max-don-diff ${difference}`;
}

export const H265: PayloadFormat = {
  ...FORWARDED_ONLY,
  kind: 'video',
  mimeType: 'video/H265',
  label: 'H.265 of the Main profile',
  clockRate: 90_000,
  offered: { payloadType: 104, rtxPayloadType: 105, parameters: 'level-id=93;profile-id=1;tier-flag=0;tx-mode=SRST' },
  reordersPictures: true,
  hasLayers: true,
  hasDescriptors: false,
  obstacle,
  rank: (parameters) => (obstacle(parameters) === undefined ? 1 : 0),
  createReader: () => new H265Reader(),
  createNumbering: () => undefined,
};
