/** H.264 in RTP, RFC 6184 in packetization-mode 1. Frames are access units with the start codes of Annex B. */
import { readU16 } from '../bytes.js';
import { type OrderedPacket, PART_BYTES } from '../reorder-buffer.js';
import type { RtpView } from '../rtp-view.js';
import { splitAnnexB, toAnnexB } from './annex-b.js';
import { shortenFiller } from './fillers.js';
import {
  type AnnouncedParts,
  type AssembledFrame,
  EntryPoint,
  type FrameAssembler,
  MAX_ANNOUNCED_BYTES,
  MAX_PAYLOAD,
  type PayloadFormat,
  type PayloadReader,
  completed,
  formatParameters,
} from './payload-format.js';

export const NalType = {
  slice: 1,
  idr: 5,
  sei: 6,
  sps: 7,
  pps: 8,
  aud: 9,
  filler: 12,
  /** Says something about the slice behind it. */
  prefix: 14,
  stapA: 24,
  fuA: 28,
} as const;

/** Limits on one picture: a larger one is an attack. */
const MAX_ACCESS_UNIT_BYTES = 8 * 1024 * 1024;
const MAX_NALS = 4096;

export const nalType = (nal: Buffer): number => (nal[0] ?? 0) & 0x1f;

/** Returns whether `first_mb_in_slice` of this slice is 0, encoded as a single set bit (ITU-T H.264, 7.3.3 and 9.1). */
const beginsPicture = (slice: Buffer): boolean => ((slice[1] ?? 0) & 0x80) !== 0;

/** What a packet may hold. */
const Content = {
  /** Something that other pictures need. */
  referred: 1,
  /** Slices of a picture to which no other refers. */
  slice: 2,
  /** Units that stand before slices, and that receivers can do without. */
  companion: 4,
  /** Bytes behind the slices that keep the bitrate constant (ITU-T H.264 section 7.4.2.7). */
  filler: 8,
} as const;

/**
 * Pictures to which no other refers (`nal_ref_idc` 0, ITU-T H.264 section 7.4.1) are the upper one of two temporal
 * layers: Chromium's highest layer in the modes L1T2 and L1T3. A receiver may begin with any of them. Larger sizes
 * arrive as separate streams; RFC 6190 is not supported. Packets that only accompany a picture do not tell its layer,
 * and count as the upper one: without its slices, receivers would take them for a picture that never ends. Fillers
 * belong to the slices before them, and are shortened: encoders with a constant bitrate send mostly fillers.
 */
class H264Reader implements PayloadReader {
  temporalLayer = 0;
  readonly spatialLayer = 0;
  readonly endsLayer = false;
  readonly switchesTo = 1;
  readonly headerLength = 0;
  hasPicture = true;
  entryPoint: EntryPoint = EntryPoint.no;
  /** Picture of the last slices, and whether they are of the upper layer. */
  #timestamp = -1;
  #isUpper = false;

  /** A slice starts nothing without its parameter sets, which may be in a packet before it. */
  read(view: RtpView): boolean {
    const at = findKeyframeUnit(view);
    const unit = at < 0 ? 0 : view.buffer[at]! & 0x1f;
    this.entryPoint = unit === NalType.sps ? EntryPoint.yes : unit === NalType.idr ? EntryPoint.ifFirst : EntryPoint.no;
    const content = at < 0 ? contentOf(view) : Content.referred;
    this.hasPicture = content !== Content.companion && content !== Content.filler;
    if (content === Content.filler) {
      this.temporalLayer = this.#isUpper && view.timestamp === this.#timestamp ? 1 : 0;
      this.#shorten(view);
      return true;
    }
    // The end of a picture is never left out alone.
    const isUpper = this.hasPicture ? (content & (Content.referred | Content.slice)) === Content.slice : !view.marker;
    this.temporalLayer = isUpper ? 1 : 0;
    if (!this.hasPicture) return true;
    this.#timestamp = view.timestamp;
    this.#isUpper = isUpper;
    return true;
  }

  #shorten(view: RtpView): void {
    const { buffer, payloadStart } = view;
    const isFragment = (buffer[payloadStart]! & 0x1f) === NalType.fuA;
    if (shortenFiller(view, 1, isFragment)) buffer[payloadStart] = NalType.filler;
  }

  write(): number {
    return 0;
  }
}

/**
 * Returns the offset of the header byte of the first IDR slice or sequence parameter set in the packet, alone, inside a
 * STAP-A, or as the first fragment of an FU-A; -1 if there is none. RFC 6184 sections 5.6 to 5.8.
 */
function findKeyframeUnit(view: RtpView): number {
  const { buffer, payloadStart, payloadEnd } = view;
  if (payloadStart >= payloadEnd) return -1;
  const type = buffer[payloadStart]! & 0x1f;
  if (isKeyframeUnit(type)) return payloadStart;
  if (type === NalType.fuA) {
    if (payloadStart + 2 > payloadEnd) return -1;
    const header = buffer[payloadStart + 1]!;
    const isStart = (header & 0x80) !== 0;
    return isStart && isKeyframeUnit(header & 0x1f) ? payloadStart + 1 : -1;
  }
  if (type !== NalType.stapA) return -1;

  let at = payloadStart + 1;
  while (at + 3 <= payloadEnd) {
    const size = readU16(buffer, at);
    if (size === 0 || at + 2 + size > payloadEnd) return -1;
    if (isKeyframeUnit(buffer[at + 2]! & 0x1f)) return at + 2;
    at += 2 + size;
  }
  return -1;
}

/** Returns a bit set of the `Content` that the packet has; 0 if it is malformed or cut off. */
function contentOf({ buffer, payloadStart, payloadEnd }: RtpView): number {
  if (payloadStart >= payloadEnd) return 0;
  const first = buffer[payloadStart]!;
  const type = first & 0x1f;
  if (type === NalType.fuA) {
    return payloadStart + 2 > payloadEnd ? 0 : contentOfUnit((first & 0x60) | (buffer[payloadStart + 1]! & 0x1f));
  }
  if (type !== NalType.stapA) return contentOfUnit(first);

  let found = 0;
  let at = payloadStart + 1;
  while (at + 3 <= payloadEnd) {
    const size = readU16(buffer, at);
    if (size === 0 || at + 2 + size > payloadEnd) return 0;
    found |= contentOfUnit(buffer[at + 2]!);
    at += 2 + size;
  }
  return found;
}

/** Types 1 to 4 are slices, or partitions of one. */
function contentOfUnit(header: number): number {
  const type = header & 0x1f;
  if (type === NalType.filler) return Content.filler;
  if ((header & 0x60) !== 0) return Content.referred;
  if (type >= NalType.slice && type < NalType.idr) return Content.slice;
  const accompanies = type === NalType.sei || type === NalType.aud || type === NalType.prefix;
  return accompanies ? Content.companion : 0;
}

function isKeyframeUnit(type: number): boolean {
  return type === NalType.idr || type === NalType.sps;
}

/** Parameter sets of `sprop-parameter-sets`, RFC 6184 section 8.1. */
class AnnouncedParameterSets implements AnnouncedParts {
  isValid = true;
  readonly #sets: readonly Buffer[];
  readonly #payload: Buffer;
  /** Picture that has its parameter sets. */
  #timestamp = -1;

  constructor(sets: readonly Buffer[]) {
    this.#sets = sets;
    this.#payload = stapA(sets);
  }

  missingBefore(view: RtpView): Buffer | undefined {
    const at = findKeyframeUnit(view);
    if (at < 0 || !this.isValid) return undefined;
    const { buffer, timestamp, payloadEnd } = view;
    if ((buffer[at]! & 0x1f) === NalType.sps) {
      this.#timestamp = timestamp;
      this.isValid = this.#isAnnounced(view, at);
      return undefined;
    }
    const isFirstSlice = at + 1 < payloadEnd && (buffer[at + 1]! & 0x80) !== 0;
    if (!isFirstSlice || timestamp === this.#timestamp) return undefined;
    this.#timestamp = timestamp;
    return this.#payload;
  }

  /** A sender that changes its picture sends new sets in its packets. */
  #isAnnounced({ buffer, payloadStart, payloadEnd }: RtpView, at: number): boolean {
    const isFragment = at === payloadStart + 1;
    if (isFragment) return false;
    const end = at === payloadStart ? payloadEnd : at + readU16(buffer, at - 2);
    const sent = buffer.subarray(at, end);

    return this.#sets.some((set) => set.equals(sent));
  }
}

function announcedParameterSets(parameters: string): AnnouncedParts | undefined {
  const [, text = ''] = /(?:^|;) *sprop-parameter-sets *= *([A-Za-z0-9+/=,]+)/i.exec(parameters) ?? [];
  if (text.length > MAX_ANNOUNCED_BYTES * 2) return undefined;
  const sets = text.split(',').map((set) => Buffer.from(set, 'base64'));
  const types = sets.map(nalType);
  const isComplete = types.includes(NalType.sps) && types.includes(NalType.pps);
  const bytes = sets.reduce((sum, set) => sum + set.length, 0);
  if (!isComplete || bytes > MAX_ANNOUNCED_BYTES) return undefined;

  return new AnnouncedParameterSets(sets.filter((_, i) => types[i] === NalType.sps || types[i] === NalType.pps));
}

/**
 * After a loss it returns nothing until the next key picture: decoders show grey for pictures with a missing reference.
 */
class H264Assembler implements FrameAssembler {
  #nals: Buffer[] = [];
  #bytes = 0;
  #timestamp = -1;
  #fragments: Buffer[] = [];
  #broken = false;
  #waitsForKey = true;
  #sps: Buffer | undefined;
  #pps: Buffer | undefined;

  get needsKeyframe(): boolean {
    return this.#waitsForKey;
  }

  get heldBytes(): number {
    return this.#bytes + (this.#nals.length + this.#fragments.length) * PART_BYTES;
  }

  gap(): void {
    this.#nals = [];
    this.#fragments = [];
    this.#bytes = 0;
    this.#broken = true;
    this.#waitsForKey = true;
  }

  push(packet: OrderedPacket): readonly AssembledFrame[] {
    let unmarked: AssembledFrame | undefined;
    if (packet.timestamp !== this.#timestamp) {
      // The previous picture had no marker.
      unmarked = this.#complete();
      this.#timestamp = packet.timestamp;
      this.#broken = false;
    }
    this.#add(packet.payload);
    return completed(unmarked, packet.marker ? this.#complete() : undefined);
  }

  #add(payload: Buffer): void {
    if (payload.length < 2) return;
    const type = nalType(payload);
    if (type >= 1 && type < NalType.stapA) this.#nal(payload);
    else if (type === NalType.stapA) this.#aggregate(payload);
    else if (type === NalType.fuA) this.#fragment(payload);
    else this.#broken = true;
  }

  #aggregate(payload: Buffer): void {
    let at = 1;
    while (at + 2 < payload.length) {
      const size = payload.readUInt16BE(at);
      if (size === 0 || at + 2 + size > payload.length) {
        this.#broken = true;
        return;
      }
      this.#nal(payload.subarray(at + 2, at + 2 + size));
      at += 2 + size;
    }
  }

  #fragment(payload: Buffer): void {
    if (this.#broken) return;
    const header = payload[1] as number;
    const starts = (header & 0x80) !== 0;
    const ends = (header & 0x40) !== 0;
    if (starts) {
      this.#fragments = [Buffer.from([((payload[0] as number) & 0xe0) | (header & 0x1f)])];
    } else if (this.#fragments.length === 0) {
      // The start is missing, so the rest is not a NAL unit.
      this.#broken = true;
      return;
    }
    this.#bytes += payload.length;
    if (this.#bytes > MAX_ACCESS_UNIT_BYTES || this.#fragments.length > MAX_NALS * 4) {
      this.gap();
      return;
    }
    this.#fragments.push(payload.subarray(2));
    if (!ends) return;
    const nal = Buffer.concat(this.#fragments);
    this.#fragments = [];
    this.#nal(nal);
  }

  #nal(nal: Buffer): void {
    const type = nalType(nal);
    if (type === NalType.sps) this.#sps = Buffer.from(nal);
    if (type === NalType.pps) this.#pps = Buffer.from(nal);
    // The rest of a broken picture is useless.
    if (this.#broken) return;
    this.#bytes += nal.length;
    if (this.#bytes > MAX_ACCESS_UNIT_BYTES || this.#nals.length >= MAX_NALS) {
      this.gap();
      return;
    }
    if (type !== NalType.aud && type !== NalType.filler) this.#nals.push(Buffer.from(nal));
  }

  #complete(): AssembledFrame | undefined {
    const nals = this.#nals;
    const broken = this.#broken || this.#fragments.length > 0;
    this.#nals = [];
    this.#fragments = [];
    this.#bytes = 0;
    if (broken) {
      this.#waitsForKey = true;
      return undefined;
    }
    const types = nals.map(nalType);
    const key = types.includes(NalType.idr);
    // Parameter sets alone are not a picture; remember them for the next one.
    if (!key && !types.includes(NalType.slice)) return undefined;
    // After a loss, a key picture without its first slices looks complete.
    if (this.#waitsForKey && !nals.some((nal) => nalType(nal) === NalType.idr && beginsPicture(nal))) return undefined;
    if (key) {
      if (this.#sps === undefined || this.#pps === undefined) return undefined;
      if (!types.includes(NalType.pps)) nals.unshift(this.#pps);
      if (!types.includes(NalType.sps)) nals.unshift(this.#sps);
      this.#waitsForKey = false;
    }
    return { timestamp: this.#timestamp, key, data: toAnnexB(nals) };
  }
}

/**
 * Returns the RTP payloads of one access unit in order; the last one gets the marker. `maxBytes` limits each payload.
 */
export function packetiseH264(nals: readonly Buffer[], maxBytes = MAX_PAYLOAD): Buffer[] {
  const payloads: Buffer[] = [];
  let small: Buffer[] = [];
  let smallBytes = 1;
  const flush = () => {
    if (small.length === 1) payloads.push(small[0] as Buffer);
    if (small.length > 1) payloads.push(stapA(small));
    small = [];
    smallBytes = 1;
  };
  for (const nal of nals) {
    if (nal.length === 0) continue;
    if (nal.length > maxBytes) {
      flush();
      payloads.push(...fuA(nal, maxBytes));
      continue;
    }
    if (smallBytes + 2 + nal.length > maxBytes) flush();
    small.push(nal);
    smallBytes += 2 + nal.length;
  }
  flush();
  return payloads;
}

function stapA(nals: readonly Buffer[]): Buffer {
  const importance = Math.max(...nals.map((nal) => (nal[0] as number) & 0x60));
  const out = Buffer.alloc(1 + nals.reduce((sum, nal) => sum + 2 + nal.length, 0));
  out[0] = importance | NalType.stapA;
  let at = 1;
  for (const nal of nals) {
    at = out.writeUInt16BE(nal.length, at);
    at += nal.copy(out, at);
  }
  return out;
}

function fuA(nal: Buffer, maxBytes: number): Buffer[] {
  const room = maxBytes - 2;
  const out: Buffer[] = [];
  const first = nal[0] as number;
  for (let at = 1; at < nal.length; at += room) {
    const end = Math.min(nal.length, at + room);
    const header = (at === 1 ? 0x80 : 0) | (end === nal.length ? 0x40 : 0) | (first & 0x1f);
    out.push(Buffer.concat([Buffer.from([(first & 0xe0) | NalType.fuA, header]), nal.subarray(at, end)]));
  }
  return out;
}

/**
 * Returns true if every constrained baseline decoder can play the codec (RFC 6184 section 8.1, table 5). Without a
 * `profile-level-id` the profile is plain baseline, which such decoders cannot play.
 */
function isConstrainedBaseline(profileLevelId: string | undefined): boolean {
  const match = /^([0-9a-f]{2})([0-9a-f]{2})[0-9a-f]{2}$/i.exec(profileLevelId ?? '');
  if (match === null) return false;
  const profile = Number.parseInt(match[1] ?? '', 16);
  const constraints = Number.parseInt(match[2] ?? '', 16);
  switch (profile) {
    case 0x42:
      return (constraints & 0x4f) === 0x40;
    case 0x4d:
      return (constraints & 0x8f) === 0x80;
    case 0x58:
      return (constraints & 0xcf) === 0xc0;
    default:
      return false;
  }
}

function obstacle(parameters: string): string | undefined {
  const profile = formatParameters(parameters).get('profile-level-id');

  return isConstrainedBaseline(profile) ? undefined : `profile-level-id ${profile ?? 'missing'}`;
}

/** Prefers constrained baseline, and with it the packetization mode in which we send. */
function rank(parameters: string): number {
  if (obstacle(parameters) !== undefined) return 0;

  return formatParameters(parameters).get('packetization-mode') === '1' ? 2 : 1;
}

export const H264: PayloadFormat = {
  kind: 'video',
  mimeType: 'video/H264',
  label: 'constrained baseline H.264',
  clockRate: 90_000,
  onRequest: false,
  offered: {
    payloadType: 98,
    rtxPayloadType: 99,
    parameters: 'level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f',
  },
  reordersPictures: true,
  hasLayers: true,
  hasDescriptors: false,
  obstacle,
  rank,
  createReader: () => new H264Reader(),
  createNumbering: () => undefined,
  createAssembler: () => new H264Assembler(),
  createAnnouncedParts: announcedParameterSets,
  packetise: (frame) => {
    const nals = splitAnnexB(frame).filter((nal) => nalType(nal) !== NalType.aud);
    return { key: nals.some((nal) => nalType(nal) === NalType.idr), payloads: packetiseH264(nals) };
  },
};
