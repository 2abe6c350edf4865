/** Handshake messages (RFC 6347 section 4.2.3): reassembles the client's in order and writes ours unfragmented. */

export const HANDSHAKE_HEADER = 12;

export const HandshakeType = {
  clientHello: 1,
  serverHello: 2,
  helloVerifyRequest: 3,
  certificate: 11,
  serverKeyExchange: 12,
  certificateRequest: 13,
  serverHelloDone: 14,
  certificateVerify: 15,
  clientKeyExchange: 16,
  finished: 20,
} as const;

/** Bound on one message in bytes; a client's certificate chain stays far below it. */
const MAX_MESSAGE_LENGTH = 16_384;
/** Number of messages ahead of the next one whose fragments are kept. */
const MAX_AHEAD = 8;
/** Bound on all buffered fragments together, in bytes. */
const MAX_BUFFERED = 65_536;

export interface HandshakeFragment {
  type: number;
  /** Length of the whole message without its header. */
  length: number;
  messageSeq: number;
  offset: number;
  data: Buffer;
}

interface Partial {
  type: number;
  length: number;
  body: Buffer;
  /** 1 for every byte received. */
  have: Uint8Array;
  missing: number;
}

/** Returns the fragments of one plaintext handshake record; undefined if it is malformed. */
export function readFragments(record: Buffer): HandshakeFragment[] | undefined {
  const fragments: HandshakeFragment[] = [];
  for (let at = 0; at < record.length; ) {
    if (record.length - at < HANDSHAKE_HEADER) return undefined;
    const length = record.readUIntBE(at + 1, 3);
    const offset = record.readUIntBE(at + 6, 3);
    const size = record.readUIntBE(at + 9, 3);
    const end = at + HANDSHAKE_HEADER + size;
    if (end > record.length || offset + size > length || length > MAX_MESSAGE_LENGTH) return undefined;
    fragments.push({
      type: record[at] ?? 0,
      length,
      messageSeq: record.readUInt16BE(at + 4),
      offset,
      data: record.subarray(at + HANDSHAKE_HEADER, end),
    });
    at = end;
  }
  return fragments;
}

/** Returns one of our messages with its header. */
export function handshakeMessage(type: number, messageSeq: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const header = Buffer.alloc(HANDSHAKE_HEADER);
  header[0] = type;
  header.writeUIntBE(body.length, 1, 3);
  header.writeUInt16BE(messageSeq, 4);
  header.writeUIntBE(body.length, 9, 3);
  return Buffer.concat([header, body]);
}

/**
 * Reassembles fragments that arrive in any order and any number of times. Memory is bounded: fragments that do not fit
 * are dropped, and the client retransmits them.
 */
export class HandshakeAssembler {
  readonly #partials = new Map<number, Partial>();
  #buffered = 0;
  /** Sequence number of the next message. */
  next = 0;

  /**
   * Adds a fragment of message `next` or a later one. Returns false when there is no room. A fragment that contradicts
   * earlier ones replaces them: a client retransmits its messages, a forger may not.
   */
  add(fragment: HandshakeFragment): boolean {
    const ahead = fragment.messageSeq - this.next;
    if (ahead < 0 || ahead >= MAX_AHEAD) return false;
    let partial = this.#partials.get(fragment.messageSeq);
    if (partial !== undefined && (partial.type !== fragment.type || partial.length !== fragment.length)) {
      this.#drop(fragment.messageSeq);
      partial = undefined;
    }
    if (partial === undefined) {
      if (this.#buffered + fragment.length > MAX_BUFFERED) return false;
      const { type, length } = fragment;
      partial = { type, length, body: Buffer.alloc(length), have: new Uint8Array(length), missing: length };
      this.#partials.set(fragment.messageSeq, partial);
      this.#buffered += length;
    }
    // Fast path: most messages are not fragmented.
    if (partial.missing === fragment.length && fragment.data.length === fragment.length) {
      fragment.data.copy(partial.body);
      partial.have.fill(1);
      partial.missing = 0;
    }
    for (let i = 0; i < fragment.data.length && partial.missing > 0; i++) {
      const at = fragment.offset + i;
      if (partial.have[at] === 1) continue;
      partial.have[at] = 1;
      partial.body[at] = fragment.data[i] ?? 0;
      partial.missing--;
    }
    return true;
  }

  /** Returns the next message, reassembled and with its header; undefined while it is incomplete. */
  take(): Buffer | undefined {
    const partial = this.#partials.get(this.next);
    if (partial === undefined || partial.missing > 0) return undefined;
    const message = handshakeMessage(partial.type, this.next, partial.body);
    this.#drop(this.next);
    this.next++;
    return message;
  }

  /** Moves back (after an unusable hello) or forward (for a new hello), and drops all fragments. */
  restartAt(messageSeq: number): void {
    this.#partials.clear();
    this.#buffered = 0;
    this.next = messageSeq;
  }

  #drop(messageSeq: number): void {
    this.#buffered -= this.#partials.get(messageSeq)?.length ?? 0;
    this.#partials.delete(messageSeq);
  }
}
