import { gunzip, gzip } from 'node:zlib';
import { promisify } from 'node:util';
import { EXIT, Failure } from '../exit.js';

/** Increases when older dumps can no longer be read. */
export const DUMP_VERSION = 1;
const MAX_DUMP_BYTES = 512 * 1024 * 1024;

/** One request and its answer. */
export interface DumpEntry {
  /** Kind of the request, as in `InspectionClient.ask`. */
  readonly kind: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** The node that answered. */
  readonly node: string;
  readonly answer: unknown;
}

/** The JSON document in a dump, which is a gzip file. */
export interface DumpDocument {
  readonly kind: 'dump';
  readonly v: number;
  /** The dumped node. */
  readonly node: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly entries: readonly DumpEntry[];
  /** Requests that were not answered, with the reason. */
  readonly failures: readonly { readonly kind: string; readonly fields: object; readonly reason: string }[];
}

export async function packDump(dump: DumpDocument): Promise<Buffer> {
  return await promisify(gzip)(JSON.stringify(dump));
}

/** Reads a dump. @throws Failure when it is not a dump or has another version */
export async function unpackDump(bytes: Buffer, file: string): Promise<DumpDocument> {
  let dump: unknown;
  try {
    const text = await promisify(gunzip)(bytes, { maxOutputLength: MAX_DUMP_BYTES });
    dump = JSON.parse(text.toString('utf8'));
  } catch (error) {
    throw new Failure(EXIT.usage, `${file} is not a dump: ${(error as Error).message}`);
  }
  if (!isDump(dump)) throw new Failure(EXIT.usage, `${file} is not a dump of bloomctl`);
  if (dump.v !== DUMP_VERSION) {
    throw new Failure(EXIT.usage, `${file} is a dump of version ${dump.v}; this program reads version ${DUMP_VERSION}`);
  }
  return dump;
}

function isDump(value: unknown): value is DumpDocument {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, node, at, entries } = value as Partial<DumpDocument>;
  return (
    kind === 'dump' &&
    typeof node === 'string' &&
    typeof at === 'number' &&
    Array.isArray(entries) &&
    entries.every(
      (entry: Partial<DumpEntry> | null) => typeof entry?.kind === 'string' && typeof entry.node === 'string',
    )
  );
}
