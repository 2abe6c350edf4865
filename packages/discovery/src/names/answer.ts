import { randomInt } from 'node:crypto';
import { SocketAddress } from 'node:net';
import dnsPacket, { type Answer as WireRecord, type DecodedPacket } from 'dns-packet';

export interface SrvRecord {
  readonly priority: number;
  readonly weight: number;
  readonly port: number;
  readonly name: string;
}

export interface NaptrRecord {
  readonly order: number;
  readonly preference: number;
  readonly flags: string;
  readonly service: string;
  readonly replacement: string;
}

/** The contents of a record of each type. */
export interface RecordData {
  A: string;
  AAAA: string;
  SRV: SrvRecord;
  NAPTR: NaptrRecord;
}
export type RecordType = keyof RecordData;

export interface Question {
  /** In lower case, without the trailing dot. */
  readonly name: string;
  readonly type: RecordType;
}

/** The records of a name; empty when it has none of this type. */
export interface Records {
  readonly values: readonly RecordData[RecordType][];
  /** How long the records may be kept. */
  readonly ttlMs: number;
}

export type Reading =
  /** The answer belongs to another question. */
  | { readonly kind: 'other' }
  /** The question must be repeated over TCP. */
  | { readonly kind: 'truncated' }
  | { readonly kind: 'failed'; readonly why: string; readonly isRefusal?: true }
  | { readonly kind: 'records'; readonly records: Records };

const HEADER_BYTES = 12;
const QUESTION_BYTES = 5;
const RECORD_BYTES = 11;
/** Maximum number of records kept from one answer: more than any cluster has members. */
const MAX_RECORDS = 1024;
/** Maximum length of a chain of aliases. */
const MAX_ALIASES = 16;
/** Records are queried again after this time, whatever their TTL. */
const MAX_TTL_MS = 60 * 60_000;
/** Maximum time for which a missing name or missing records are remembered (RFC 2308 section 5). */
const MAX_NEGATIVE_MS = 30_000;
const NO_SUCH_NAME = 3;

/** Returns a query with a random id. */
export function queryFor({ name, type }: Question): Buffer {
  return dnsPacket.encode({
    type: 'query',
    id: randomInt(65_536),
    flags: dnsPacket.RECURSION_DESIRED,
    questions: [{ type, name }],
  });
}

/** Reads a server's answer to a query. Anyone can forge it (RFC 5452), so it is matched with the query first. */
export function readAnswer(data: Buffer, query: Buffer, question: Question): Reading {
  if (data.length < HEADER_BYTES || data.readUInt16BE(0) !== query.readUInt16BE(0) || data[2]! < 0x80)
    return { kind: 'other' };
  // The body may be cut off anywhere, even within the question.
  if ((data[2]! & 0x02) !== 0) return { kind: 'truncated' };
  const code = data[3]! & 0x0f;
  // A server that does not understand the query need not repeat the question.
  const hasQuestion = data.readUInt16BE(4) > 0;
  if (hasQuestion ? questionOf(data, query.length) !== questionOf(query, query.length) : code === 0)
    return { kind: 'other' };
  if (code !== 0 && code !== NO_SUCH_NAME)
    return { kind: 'failed', why: `it answered with error ${code}`, isRefusal: true };
  try {
    if (leastBytes(data) > data.length) throw new Error('it announces more records than it holds');
    const packet = dnsPacket.decode(data);

    return { kind: 'records', records: recordsOf(packet, question, code) };
  } catch (error) {
    return { kind: 'failed', why: `its answer is malformed: ${(error as Error).message}` };
  }
}

function questionOf(packet: Buffer, end: number): string {
  return packet.toString('latin1', HEADER_BYTES, end).toLowerCase();
}

/** Returns the smallest size of a packet with the counts of this header. */
function leastBytes(data: Buffer): number {
  const records = data.readUInt16BE(6) + data.readUInt16BE(8) + data.readUInt16BE(10);

  return HEADER_BYTES + QUESTION_BYTES * data.readUInt16BE(4) + RECORD_BYTES * records;
}

function recordsOf({ answers = [], authorities = [] }: DecodedPacket, question: Question, code: number): Records {
  const aliases = new Map<string, { to: string; ttl: number }>();
  for (const record of answers) {
    if (record.type === 'CNAME') aliases.set(record.name.toLowerCase(), { to: record.data, ttl: ttlOf(record) });
  }
  let owner = question.name;
  let ttl = Infinity;
  for (let alias = aliases.get(owner), steps = 1; alias !== undefined; alias = aliases.get(owner), steps += 1) {
    if (steps > MAX_ALIASES) throw new Error(`more than ${MAX_ALIASES} aliases follow one another`);
    owner = alias.to.toLowerCase();
    ttl = Math.min(ttl, alias.ttl);
  }
  const values = new Map<string, RecordData[RecordType]>();
  for (const record of code === NO_SUCH_NAME ? [] : answers) {
    if (record.type !== question.type || record.name.toLowerCase() !== owner || values.size >= MAX_RECORDS) continue;
    const value = valueOf(record);
    if (value === undefined) continue;
    values.set(JSON.stringify(value), value);
    ttl = Math.min(ttl, ttlOf(record));
  }
  if (values.size > 0) return { values: [...values.values()], ttlMs: Math.min(ttl * 1000, MAX_TTL_MS) };
  const soa = authorities.find((record) => record.type === 'SOA');
  const negative = soa === undefined ? 0 : Math.min(ttlOf(soa), soa.data.minimum ?? 0);

  return { values: [], ttlMs: Math.min(negative * 1000, MAX_NEGATIVE_MS) };
}

/** Returns seconds. A value with the highest bit set counts as 0 (RFC 2181 section 8). */
function ttlOf({ ttl = 0 }: { ttl?: number | undefined }): number {
  return ttl >= 2 ** 31 ? 0 : ttl;
}

function valueOf(record: WireRecord): RecordData[RecordType] | undefined {
  switch (record.type) {
    case 'A':
      return record.data;
    case 'AAAA':
      // One spelling per address, since node names contain it.
      return new SocketAddress({ address: record.data, family: 'ipv6' }).address;
    case 'SRV': {
      const { priority = 0, weight = 0, port, target } = record.data;
      return { priority, weight, port, name: target };
    }
    case 'NAPTR': {
      const { order, preference, flags, services, replacement } = record.data;
      return { order, preference, flags, service: services, replacement };
    }
    default:
      return undefined;
  }
}
