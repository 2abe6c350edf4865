/** Decoding of what clients send. Two bytes can make one object, so the sum of fields is limited, at any depth. */
import { SignalRequest } from '@livekit/protocol';

/** Fields of a message and all those in it. */
export const MAX_FIELDS = 10_000;

const { readerFactory } = SignalRequest.runtime.bin.makeReadOptions();
type JsonValue = Parameters<typeof SignalRequest.fromJson>[0];
type ReadOptions = NonNullable<Parameters<typeof SignalRequest.fromBinary>[1]>;

/** Fields that may be read; `decode` counts them down. */
export interface FieldCount {
  left: number;
}

/**
 * Decodes a message without its unknown fields, unless a packet has to keep them.
 * @throws Error when it cannot be decoded or has more fields than `count`, by default `MAX_FIELDS`
 */
export function decode<T>(
  type: { fromBinary(bytes: Uint8Array, options?: ReadOptions): T },
  bytes: Uint8Array,
  { count = { left: MAX_FIELDS }, readUnknownFields = false }: { count?: FieldCount; readUnknownFields?: boolean } = {},
): T {
  return type.fromBinary(bytes, { readerFactory: (each) => countingReader(each, count), readUnknownFields });
}

/** Returns a reader that gives up at the first field too many; nested messages are read with the same one. */
function countingReader(bytes: Uint8Array, count: FieldCount): ReturnType<typeof readerFactory> {
  const reader = readerFactory(bytes);
  const tag = reader.tag.bind(reader);
  const max = count.left;
  reader.tag = () => {
    if (count.left < 1) throw new Error(`more than ${max} fields`);
    count.left -= 1;
    return tag();
  };

  return reader;
}

/**
 * Returns a request in text as binary; undefined for one that cannot be read, or has numbers that no message can.
 * `count`: the values in it that may be read, by default `MAX_FIELDS`, which are counted down.
 */
export function binaryOf(text: string, count: FieldCount = { left: MAX_FIELDS }): Uint8Array | undefined {
  try {
    return decodeText(SignalRequest, text, count).toBinary();
  } catch {
    return undefined;
  }
}

/**
 * Decodes a message in text without its unknown fields.
 * @throws Error when it cannot be decoded or has more values, at any depth, than `count`
 */
export function decodeText<T>(
  type: { fromJson(value: JsonValue, options: { ignoreUnknownFields: boolean }): T },
  text: string,
  count: FieldCount = { left: MAX_FIELDS },
): T {
  const message = JSON.parse(text) as JsonValue;
  const values: unknown[] = [message];
  // A loop: the text may be deeper than the stack.
  for (let value = values.pop(); value !== undefined; value = values.pop()) {
    count.left -= 1;
    if (count.left < values.length) {
      count.left = 0;
      throw new Error('too many values');
    }
    if (typeof value === 'object' && value !== null) for (const each of Object.values(value)) values.push(each);
  }

  return type.fromJson(message, { ignoreUnknownFields: true });
}
