// One websocket frame is one `PeerMessage` (docs/reference/peer-signaling.md): a Protocol Buffers message with exactly
// one of three fields set. Three fields need no library, which would make up most of this package's size.

/** Bytes outside shared memory: `Uint8Array<ArrayBuffer>`, but before TypeScript 5.7 that type had no parameter. */
export type Bytes = ReturnType<typeof Uint8Array.of>;

/** What the server sends. */
export type PeerMessage =
  | { readonly type: 'authenticated' | 'unknown' }
  /** JSON text of one media event. */
  | { readonly type: 'mediaEvent'; readonly data: string };

const FIELDS = { authenticated: 1, authRequest: 2, mediaEvent: 3 } as const;
/** The only field of `AuthRequest` and of `MediaEvent`. */
const TEXT = 1;
const LENGTH_DELIMITED = 2;

export function encodeFrame(type: 'authRequest' | 'mediaEvent', text: string): Bytes {
  return field(FIELDS[type], field(TEXT, new TextEncoder().encode(text)));
}

/** Decodes one frame. Anything but what this version of the server sends is `unknown`. */
export function decodeFrame(frame: ArrayBuffer): PeerMessage {
  const content = readFields(new Uint8Array(frame));
  const event = content.get(FIELDS.mediaEvent);
  if (event !== undefined) return { type: 'mediaEvent', data: textOf(event) };
  return { type: content.has(FIELDS.authenticated) ? 'authenticated' : 'unknown' };
}

function textOf(message: Uint8Array): string {
  const text = readFields(message).get(TEXT) ?? new Uint8Array();
  if (typeof TextDecoder === 'function') return new TextDecoder().decode(text);
  // Older React Native engines have only a `TextEncoder`.
  return decodeURIComponent(Array.from(text, (byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''));
}

function field(number: number, value: Uint8Array): Bytes {
  const header = [(number << 3) | LENGTH_DELIMITED];
  let rest = value.length;
  for (; rest > 0x7f; rest >>>= 7) header.push((rest & 0x7f) | 0x80);
  header.push(rest);
  return concat(header, value);
}

/** Returns `head` followed by `rest`. */
export function concat(head: ArrayLike<number>, rest: Uint8Array): Bytes {
  const bytes = new Uint8Array(head.length + rest.length);
  bytes.set(head);
  bytes.set(rest, head.length);
  return bytes;
}

/** Returns the length-delimited fields by number, up to the first field of another kind. */
function readFields(bytes: Uint8Array): Map<number, Uint8Array> {
  const fields = new Map<number, Uint8Array>();
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 28; scale *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    return Infinity;
  };
  while (at < bytes.length) {
    const tag = varint();
    const length = varint();
    if ((tag & 7) !== LENGTH_DELIMITED || length > bytes.length - at) break;
    fields.set(tag >>> 3, bytes.subarray(at, at + length));
    at += length;
  }
  return fields;
}
