// One frame of the server websocket is one `ServerMessage` (docs/reference/notifications.md): a Protocol Buffers message of which
// exactly one field is set. The page needs few of its types, for which a library would be most of its size.

/** The contents by field number, each with the names of its own fields. */
const CONTENTS: Readonly<Record<number, readonly [type: string, ...fields: string[]]>> = {
  1: ['roomCrashed', 'roomId'],
  2: ['peerConnected', 'roomId', 'peerId'],
  3: ['peerDisconnected', 'roomId', 'peerId'],
  4: ['peerCrashed', 'roomId', 'peerId', 'reason'],
  5: ['componentCrashed', 'roomId', 'componentId'],
  6: ['authenticated'],
  9: ['subscribed'],
  10: ['roomCreated', 'roomId'],
  11: ['roomDeleted', 'roomId'],
  13: ['hlsPlayable', 'roomId', 'componentId'],
  14: ['hlsUploaded', 'roomId'],
  15: ['hlsUploadCrashed', 'roomId'],
  16: ['peerMetadataUpdated', 'roomId', 'peerId', 'metadata'],
  17: ['trackAdded', 'roomId', 'peerId', 'componentId', 'track'],
  18: ['trackRemoved', 'roomId', 'peerId', 'componentId', 'track'],
  19: ['trackMetadataUpdated', 'roomId', 'peerId', 'componentId', 'track'],
  20: ['peerAdded', 'roomId', 'peerId'],
  21: ['peerDeleted', 'roomId', 'peerId'],
};
const AUTH_REQUEST = 7;
const SUBSCRIBE_REQUEST = 8;
const TRACK_ID = 1;
const LENGTH_DELIMITED = 2;

export interface ServerFrame {
  readonly type: string;
  /** Texts by name: ids, a reason, metadata as JSON. */
  readonly fields: Readonly<Record<string, string>>;
}

/** Decodes one frame; undefined for anything that is no known message. */
export function decodeFrame(frame: ArrayBuffer): ServerFrame | undefined {
  const [[number, content] = [0, undefined]] = readFields(new Uint8Array(frame));
  const known = CONTENTS[number];
  if (known === undefined || content === undefined) return undefined;
  const [type, ...names] = known;
  const fields: Record<string, string> = {};
  for (const [at, value] of readFields(content)) {
    const name = names[at - 1];
    if (name === 'track') fields['trackId'] = textOf(new Map(readFields(value)).get(TRACK_ID) ?? new Uint8Array());
    else if (name !== undefined) fields[name] = textOf(value);
  }
  return { type, fields };
}

export function authRequest(token: string): Uint8Array<ArrayBuffer> {
  return field(AUTH_REQUEST, field(1, new TextEncoder().encode(token)));
}

/** Asks for the notifications, event type 1. */
export function subscribeRequest(): Uint8Array<ArrayBuffer> {
  return field(SUBSCRIBE_REQUEST, new Uint8Array([1 << 3, 1]));
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

function field(number: number, value: Uint8Array): Uint8Array<ArrayBuffer> {
  const header = [(number << 3) | LENGTH_DELIMITED];
  let rest = value.length;
  for (; rest > 0x7f; rest >>>= 7) header.push((rest & 0x7f) | 0x80);
  header.push(rest);
  const bytes = new Uint8Array(header.length + value.length);
  bytes.set(header);
  bytes.set(value, header.length);
  return bytes;
}

/** Returns the length-delimited fields in their order, up to the first one of another kind. */
function readFields(bytes: Uint8Array): [number: number, value: Uint8Array][] {
  const fields: [number, Uint8Array][] = [];
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
    fields.push([tag >>> 3, bytes.subarray(at, at + length)]);
    at += length;
  }
  return fields;
}
