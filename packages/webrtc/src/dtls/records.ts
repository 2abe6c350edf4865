/** DTLS 1.2 record layer (RFC 6347 section 4.1). */

export const RECORD_HEADER = 13;
/** Version on the wire; later versions have smaller numbers. */
export const DTLS_1_2 = 0xfefd;
/** 2^14 plus the expansion that a cipher may add (RFC 6347 section 4.1). */
const MAX_RECORD_LENGTH = 16_384 + 2_048;

export const ContentType = { changeCipherSpec: 20, alert: 21, handshake: 22, applicationData: 23 } as const;

export interface DtlsRecord {
  type: number;
  /** 0xFEFF (DTLS 1.0, first hellos) or 0xFEFD (DTLS 1.2). */
  version: number;
  epoch: number;
  /** 48-bit number. */
  sequence: number;
  fragment: Buffer;
  /** The record including its header. */
  whole: Buffer;
}

/** Returns the records of a datagram as views, up to the first malformed one; undefined if there is none. */
export function readRecords(datagram: Buffer): DtlsRecord[] | undefined {
  const records: DtlsRecord[] = [];
  for (let at = 0; at < datagram.length; ) {
    if (datagram.length - at < RECORD_HEADER) break;
    const type = datagram[at] ?? 0;
    const version = datagram.readUInt16BE(at + 1);
    const length = datagram.readUInt16BE(at + 11);
    const end = at + RECORD_HEADER + length;
    if (type < 20 || type > 25 || version >>> 8 !== 0xfe) break;
    if (length === 0 || length > MAX_RECORD_LENGTH || end > datagram.length) break;
    records.push({
      type,
      version,
      epoch: datagram.readUInt16BE(at + 3),
      sequence: datagram.readUIntBE(at + 5, 6),
      fragment: datagram.subarray(at + RECORD_HEADER, end),
      whole: datagram.subarray(at, end),
    });
    at = end;
  }
  return records.length === 0 ? undefined : records;
}

/** Returns a plaintext record. */
export function plainRecord(type: number, sequence: number, fragment: Buffer): Buffer {
  const record = Buffer.alloc(RECORD_HEADER + fragment.length);
  record[0] = type;
  record.writeUInt16BE(DTLS_1_2, 1);
  record.writeUIntBE(sequence, 5, 6);
  record.writeUInt16BE(fragment.length, 11);
  fragment.copy(record, RECORD_HEADER);
  return record;
}
