import { fromBinary, type DescMessage, type MessageShape } from '@bufbuild/protobuf';
import { ProtocolError } from './protocol-error.js';

/** Checks the size of a message, then decodes it; unknown fields are dropped. */
export function decodeBounded<Desc extends DescMessage>(
  schema: Desc,
  bytes: Uint8Array,
  maxBytes: number,
): MessageShape<Desc> {
  if (bytes.byteLength > maxBytes) {
    throw new ProtocolError('FRAME_TOO_LARGE', `a ${schema.name} of ${bytes.byteLength} bytes exceeds ${maxBytes}`);
  }
  try {
    return fromBinary(schema, bytes, { readUnknownFields: false });
  } catch (cause) {
    throw new ProtocolError('FRAME_UNDECODABLE', `${bytes.byteLength} bytes are not a ${schema.name}`, { cause });
  }
}
