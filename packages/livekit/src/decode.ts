/** Decoding of what clients send. Two bytes can make one object, so the sum of fields is limited, at any depth. */
import { SignalRequest } from '@livekit/protocol';

/** Fields of a message and all those in it. */
export const MAX_FIELDS = 10_000;

const { readerFactory } = SignalRequest.runtime.bin.makeReadOptions();
type ReadOptions = NonNullable<Parameters<typeof SignalRequest.fromBinary>[1]>;

/**
 * Decodes a message.
 * @throws Error when it cannot be decoded or has more than `MAX_FIELDS` fields
 */
export function decode<T>(type: { fromBinary(bytes: Uint8Array, options?: ReadOptions): T }, bytes: Uint8Array): T {
  return type.fromBinary(bytes, { readerFactory: countingReader, readUnknownFields: false });
}

/** Returns a reader that gives up at the first field too many; nested messages are read with the same one. */
function countingReader(bytes: Uint8Array): ReturnType<typeof readerFactory> {
  const reader = readerFactory(bytes);
  const tag = reader.tag.bind(reader);
  let fields = 0;
  reader.tag = () => {
    fields += 1;
    if (fields > MAX_FIELDS) throw new Error(`more than ${MAX_FIELDS} fields`);
    return tag();
  };

  return reader;
}

/** Returns a request in text as binary; undefined for one that cannot be read, or has numbers that no message can. */
export function binaryOf(text: string): Uint8Array | undefined {
  // In JSON, each further value follows one of these.
  if (text.split(/[{,]/, MAX_FIELDS + 2).length > MAX_FIELDS + 1) return undefined;
  try {
    return SignalRequest.fromJsonString(text, { ignoreUnknownFields: true }).toBinary();
  } catch {
    return undefined;
  }
}
