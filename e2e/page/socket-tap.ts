// Observes every media event of the SDK without touching it, by wrapping the page's WebSocket.
// PeerMessage has three length-delimited fields; only mediaEvent (3, with its text in field 1) matters here.

const mediaEventTag = 0x1a;
const textTag = 0x0a;

function readLength(bytes: Uint8Array, at: number): [value: number, next: number] {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++] ?? 0;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return [value, at];
  }
}

function writeLength(value: number): number[] {
  const out = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return [...out, rest];
    out.push((rest & 0x7f) | 0x80);
  }
}

export function encodeMediaEvent(text: string): Uint8Array {
  const body = new TextEncoder().encode(text);
  const inner = [textTag, ...writeLength(body.length), ...body];
  return Uint8Array.from([mediaEventTag, ...writeLength(inner.length), ...inner]);
}

function decodeMediaEvent(bytes: Uint8Array): string | undefined {
  if (bytes[0] !== mediaEventTag) return undefined;
  const [, inner] = readLength(bytes, 1);
  if (bytes[inner] !== textTag) return undefined;
  const [length, start] = readLength(bytes, inner + 1);
  return new TextDecoder().decode(bytes.subarray(start, start + length));
}

export interface MediaEventSeen {
  /** The innermost type; `custom` is unwrapped. */
  readonly event: string;
  readonly data: unknown;
}

function parse(bytes: Uint8Array): MediaEventSeen | undefined {
  const text = decodeMediaEvent(bytes);
  if (text === undefined) return undefined;
  let event = JSON.parse(text) as { type: string; data?: unknown };
  while (event.type === 'custom') event = event.data as typeof event;
  return { event: event.type, data: event.data };
}

export interface Tap {
  /** The most recently opened socket. */
  current(): WebSocket | undefined;
}

export function tapSockets(seen: (direction: 'sent' | 'received', event: MediaEventSeen) => void): Tap {
  let current: WebSocket | undefined;
  const remember = (socket: WebSocket): void => {
    current = socket;
  };

  window.WebSocket = class extends WebSocket {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      remember(this);
      this.addEventListener('message', ({ data }) => {
        const event = parse(new Uint8Array(data as ArrayBuffer));
        if (event) seen('received', event);
      });
    }

    override send(data: string | Blob | BufferSource): void {
      super.send(data);
      if (!(data instanceof Uint8Array)) return;
      let event: MediaEventSeen | undefined;
      try {
        event = parse(data);
      } catch {
        return; // garbage sent on purpose
      }
      if (event) seen('sent', event);
    }
  };

  return { current: () => current };
}
