import { findStartCode, NalType, nalType, splitAnnexB } from '@bloom/rtp';
import { ComponentError } from '../errors.js';
import { ppsId, sliceStart, spsId } from './parameter-sets.js';

const MAX_UNIT_BYTES = 8 * 1024 * 1024;
const MAX_NALS = 4096;
const MAX_PARAMETER_SETS = 32;

export interface AccessUnit {
  key: boolean;
  /** NAL units without start codes. A key picture starts with its parameter sets. */
  nals: Buffer[];
}

/**
 * Splits a raw H.264 stream (Annex B) into access units, ITU-T H.264 section 7.4.1.2.3. Output starts at the first key
 * picture, and every key picture carries the known parameter sets so that receivers can join there.
 */
export class AccessUnits {
  #rest: Buffer = Buffer.alloc(0);
  #scanned = 0;
  #nals: Buffer[] = [];
  #bytes = 0;
  #hasSlice = false;
  #isKey = false;
  #begun = false;
  #skipped = 0;
  #bareKeys = 0;
  readonly #sps = new Map<number, Buffer>();
  readonly #pps = new Map<number, Buffer>();

  /** Pictures dropped before the first key picture. */
  get skipped(): number {
    return this.#skipped;
  }

  /** Key pictures that cannot be decoded because no parameter sets have arrived. */
  get bareKeys(): number {
    return this.#bareKeys;
  }

  /** @throws ComponentError `BAD_H264` for B frames and oversized pictures */
  push(chunk: Buffer): AccessUnit[] {
    const units: AccessUnit[] = [];
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let start = findStartCode(bytes, 0);
    // Do not search the same bytes twice.
    let from = Math.max(start + 3, this.#scanned);
    for (;;) {
      const next = start < 0 ? -1 : findStartCode(bytes, from);
      if (next < 0) break;
      this.#nal(trimmed(bytes.subarray(start + 3, next)), units);
      start = next;
      from = next + 3;
    }
    bytes = bytes.subarray(start < 0 ? Math.max(0, bytes.length - 2) : start);
    if (bytes.length > MAX_UNIT_BYTES) throw tooLarge(bytes.length);
    this.#rest = Buffer.from(bytes);
    this.#scanned = Math.max(0, bytes.length - 2);
    return units;
  }

  /**
   * Takes whole access units from a container, so that none waits for the next one to start. Bytes without a picture
   * only contribute parameter sets.
   * @throws ComponentError `BAD_H264` as `push` does
   */
  pushWhole(bytes: Buffer): AccessUnit[] {
    if (bytes.length > MAX_UNIT_BYTES) throw tooLarge(bytes.length);
    const units: AccessUnit[] = [];
    for (const nal of splitAnnexB(bytes)) this.#nal(nal, units);
    this.#finish(units);
    return units;
  }

  /** Returns the last picture. */
  end(): AccessUnit[] {
    const units: AccessUnit[] = [];
    if (findStartCode(this.#rest, 0) === 0) this.#nal(trimmed(this.#rest.subarray(3)), units);
    this.#rest = Buffer.alloc(0);
    this.#finish(units);
    return units;
  }

  #nal(nal: Buffer, units: AccessUnit[]): void {
    if (nal.length === 0) return;
    const type = nalType(nal);
    const isSlice = type >= NalType.slice && type <= NalType.idr;
    if (isSlice) {
      // Slice partitions B and C (types 3 and 4) have other headers and never start a picture.
      const { first, bidirectional } = type === 3 || type === 4 ? NO_START : sliceStart(nal);
      if (bidirectional) {
        throw new ComponentError('BAD_H264', 'the stream has B frames, which receivers of a call show out of order');
      }
      if (first && this.#hasSlice) this.#finish(units);
      this.#hasSlice = true;
      if (type === NalType.idr) this.#isKey = true;
    } else if (this.#hasSlice && (type <= NalType.aud || (type >= 14 && type <= 18))) {
      this.#finish(units);
    }
    if (type === NalType.sps && nal.length > 4) keep(this.#sps, spsId(nal), nal);
    if (type === NalType.pps && nal.length > 1) keep(this.#pps, ppsId(nal), nal);
    this.#bytes += nal.length;
    if (this.#bytes > MAX_UNIT_BYTES || this.#nals.length >= MAX_NALS) throw tooLarge(this.#bytes);
    if (travels(type)) this.#nals.push(Buffer.from(nal));
  }

  #finish(units: AccessUnit[]): void {
    const nals = this.#nals;
    const key = this.#isKey;
    const hasSlice = this.#hasSlice;
    this.#nals = [];
    this.#bytes = 0;
    this.#hasSlice = false;
    this.#isKey = false;
    if (!hasSlice) return;
    if (key && this.#sps.size > 0 && this.#pps.size > 0) this.#begun = true;
    if (!this.#begun) {
      this.#skipped++;
      if (key) this.#bareKeys++;
      return;
    }
    if (key) {
      const rest = nals.filter((nal) => nalType(nal) !== NalType.sps && nalType(nal) !== NalType.pps);
      units.push({ key, nals: [...this.#sps.values(), ...this.#pps.values(), ...rest] });
    } else {
      units.push({ key, nals });
    }
  }
}

const NO_START = { first: false, bidirectional: false };

/** RTP has no use for delimiters, fillers and ends of sequence, and gives reserved types another meaning. */
function travels(type: number): boolean {
  return type > 0 && type < 24 && (type < NalType.aud || type > 12);
}

/** Trailing zeros belong to the next start code. */
function trimmed(nal: Buffer): Buffer {
  let end = nal.length;
  while (end > 0 && nal[end - 1] === 0) end--;
  return nal.subarray(0, end);
}

function keep(sets: Map<number, Buffer>, id: number, nal: Buffer): void {
  if (sets.size < MAX_PARAMETER_SETS || sets.has(id)) sets.set(id, Buffer.from(nal));
}

function tooLarge(bytes: number): ComponentError {
  return new ComponentError('BAD_H264', `a picture has more than ${MAX_UNIT_BYTES} bytes (${bytes} so far)`);
}
