/** H.265 in RTP, RFC 7798 without decoding order numbers. */
import { readU16 } from '../bytes.js';
import type { RtpView } from '../rtp-view.js';
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
  aggregation: 48,
  fragment: 49,
} as const;

/** Length of a unit's header, and of that of a packet. */
const HEADER = 2;

const unitType = (header: number): number => (header >>> 1) & 0x3f;

/** A receiver begins with the video parameter set, which precedes all other units of a key picture. */
class H265Reader implements PayloadReader {
  readonly spatialLayer = 0;
  readonly endsLayer = false;
  readonly headerLength = 0;
  temporalLayer = 0;
  switchesTo = -1;
  entryPoint: EntryPoint = EntryPoint.no;

  read(view: RtpView): boolean {
    const { buffer, payloadStart, payloadEnd } = view;
    if (payloadEnd - payloadStart <= HEADER) return false;
    // The identifier counts from 1; 0 is forbidden (section 1.1.4).
    const temporalId = buffer[payloadStart + 1]! & 7;
    if (temporalId === 0) return false;
    this.temporalLayer = temporalId - 1;
    this.entryPoint = entryPointOf(view);
    this.switchesTo = isAccess(view) ? this.temporalLayer : -1;
    return true;
  }

  write(): number {
    return 0;
  }
}

/** Returns whether the packet begins with a unit of such a picture: alone, a fragment, or the first of an aggregate. */
function isAccess({ buffer, payloadStart, payloadEnd }: RtpView): boolean {
  const outer = unitType(buffer[payloadStart]!);
  let type = outer;
  if (outer === UnitType.fragment) type = buffer[payloadStart + HEADER]! & 0x3f;
  else if (outer === UnitType.aggregation) {
    const first = payloadStart + HEADER + 2;
    type = first < payloadEnd ? unitType(buffer[first]!) : outer;
  }
  return type >= UnitType.firstAccess && type <= UnitType.lastAccess;
}

function entryPointOf({ buffer, payloadStart, payloadEnd }: RtpView): EntryPoint {
  const type = unitType(buffer[payloadStart]!);
  if (type === UnitType.fragment) {
    const header = buffer[payloadStart + HEADER]!;
    const isStart = (header & 0x80) !== 0;
    return isStart ? ofUnit(header & 0x3f) : EntryPoint.no;
  }
  if (type !== UnitType.aggregation) return ofUnit(type);

  let at = payloadStart + HEADER;
  while (at + 2 + HEADER <= payloadEnd) {
    const size = readU16(buffer, at);
    if (size < HEADER || at + 2 + size > payloadEnd) return EntryPoint.no;
    const found = ofUnit(unitType(buffer[at + 2]!));
    if (found !== EntryPoint.no) return found;
    at += 2 + size;
  }
  return EntryPoint.no;
}

function ofUnit(type: number): EntryPoint {
  if (type === UnitType.vps) return EntryPoint.yes;
  return type >= UnitType.firstIrap && type <= UnitType.lastIrap ? EntryPoint.ifFirst : EntryPoint.no;
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
