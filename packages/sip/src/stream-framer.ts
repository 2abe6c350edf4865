import { SipError } from './errors.js';
import type { SipMessage } from './message.js';
import { type Head, MAX_MESSAGE_BYTES, parseHead } from './message.js';

/**
 * Splits a TCP stream into messages by `Content-Length`, which is mandatory there (RFC 3261 section 18.3). After an
 * error the rest of the stream cannot be parsed: close the connection.
 */
export class StreamFramer {
  #pending: Buffer = Buffer.alloc(0);
  /** Kept while its body arrives, so that tiny segments do not cause repeated parsing. */
  #head: Head | undefined;
  /** Offset up to which the end of the head has been searched for. */
  #searched = 0;

  /** @throws SipError SIP_MALFORMED */
  push(chunk: Buffer): SipMessage[] {
    this.#pending = this.#pending.length > 0 ? Buffer.concat([this.#pending, chunk]) : chunk;
    const messages: SipMessage[] = [];
    for (;;) {
      if (this.#pending.every((byte) => byte === 0x0d || byte === 0x0a)) {
        // A keep-alive (RFC 5626 section 3.5.1), or nothing.
        this.#pending = Buffer.alloc(0);
        this.#searched = 0;
        return messages;
      }
      this.#head ??= parseHead(this.#pending, this.#searched);
      if (this.#head === undefined) {
        // The line feed that ends the last header field may have arrived.
        this.#searched = Math.max(0, this.#pending.length - 2);
        return messages;
      }
      const { message, bodyStart, contentLength } = this.#head;
      if (contentLength === undefined)
        throw new SipError('SIP_MALFORMED', 'a message on a stream needs a Content-Length');
      const end = bodyStart + contentLength;
      if (end > MAX_MESSAGE_BYTES) throw new SipError('SIP_MALFORMED', `a message of ${end} bytes is too long`);
      if (this.#pending.length < end) return messages;
      message.body = Buffer.from(this.#pending.subarray(bodyStart, end));
      messages.push(message);
      this.#pending = this.#pending.subarray(end);
      this.#head = undefined;
      this.#searched = 0;
    }
  }
}
