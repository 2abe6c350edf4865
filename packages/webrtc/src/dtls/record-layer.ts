import type { RecordKeys } from './key-schedule.js';
import { decryptRecord, encryptRecord } from './record-cipher.js';
import { ContentType, type DtlsRecord, plainRecord } from './records.js';

/** Bound on each datagram of a flight, in bytes. */
const MAX_DATAGRAM = 1_200;

/** One record of a flight. It gets a new record number each time it is sent. */
export interface FlightRecord {
  type: number;
  /** True in epoch 1, where records are encrypted. */
  sealed: boolean;
  body: Buffer;
}

/** Keys of both directions. */
interface Keys {
  ours: RecordKeys;
  theirs: RecordKeys;
}

/** Numbers, encrypts and decrypts the records of one association (RFC 6347 section 4.1). */
export class RecordLayer {
  /** Undefined until the handshake has agreed on keys. */
  keys: Keys | undefined;
  #plainSequence = 0;
  #sealedSequence = 0;

  /**
   * Returns the datagrams of a flight. A retransmission consists of new records (RFC 6347 section 4.2.2), because
   * the other side drops record numbers that it has already seen.
   */
  datagrams(flight: readonly FlightRecord[]): Buffer[] {
    return intoDatagrams(
      flight.map(({ type, sealed, body }) =>
        sealed ? this.seal(type, body) : plainRecord(type, this.#plainSequence++, body),
      ),
    );
  }

  /** Returns the plaintext of an encrypted record; undefined if it is not authentic. */
  open(record: DtlsRecord): Buffer | undefined {
    return this.keys && decryptRecord(this.keys.theirs, record);
  }

  /** Returns one encrypted alert record. */
  alert(level: number, description: number): Buffer {
    return this.seal(ContentType.alert, Buffer.of(level, description));
  }

  /** Returns one encrypted record. */
  seal(type: number, plain: Buffer): Buffer {
    if (this.keys === undefined) throw new Error('no keys have been agreed');
    return encryptRecord(this.keys.ours, type, this.#sealedSequence++, plain);
  }
}

function intoDatagrams(records: readonly Buffer[]): Buffer[] {
  const datagrams: Buffer[][] = [];
  let length = Number.POSITIVE_INFINITY;
  for (const record of records) {
    if (length + record.length > MAX_DATAGRAM) {
      datagrams.push([]);
      length = 0;
    }
    datagrams.at(-1)?.push(record);
    length += record.length;
  }
  return datagrams.map((each) => Buffer.concat(each));
}
