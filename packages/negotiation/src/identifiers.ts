const ICE_CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Generates the random identifiers of a session from the given source. */
export class Identifiers {
  readonly #randomBytes: (n: number) => Uint8Array;
  readonly #ssrcs = new Set<number>();

  constructor(randomBytes: (n: number) => Uint8Array) {
    this.#randomBytes = randomBytes;
  }

  /** Returns credentials with 6 bits per character: 48 and 144 bits, more than RFC 8445, section 5.3 requires. */
  iceCredentials(): { ufrag: string; pwd: string } {
    return { ufrag: this.#characters(8), pwd: this.#characters(24) };
  }

  /** Returns a unique name of 32 hexadecimal digits. */
  token(): string {
    return Buffer.from(this.#randomBytes(16)).toString('hex');
  }

  /** Returns a positive number of at most 63 bits (RFC 8829, section 5.2.1); 53 here, so that it stays exact. */
  sessionId(): string {
    const bytes = Buffer.from(this.#randomBytes(7));
    bytes[0] = (bytes[0] ?? 0) & 0x1f;
    return String(bytes.readUIntBE(1, 6) + (bytes[0] ?? 0) * 2 ** 48 + 1);
  }

  /** Returns an SSRC that is not 0, not in use in this session and not in `taken`. */
  ssrc(taken: ReadonlySet<number>): number {
    let ssrc = Buffer.from(this.#randomBytes(4)).readUInt32BE();
    while (ssrc === 0 || this.#ssrcs.has(ssrc) || taken.has(ssrc)) ssrc = (ssrc + 1) >>> 0;
    this.#ssrcs.add(ssrc);
    return ssrc;
  }

  #characters(count: number): string {
    let text = '';
    for (const byte of this.#randomBytes(count)) text += ICE_CHARACTERS[byte & 63];
    return text;
  }
}
