import { fromBinary, type DescMessage, type MessageShape } from '@bufbuild/protobuf';
import { ProtocolError } from './protocol-error.js';

/** Limits are checked before anything is decoded; unknown fields are skipped and not kept. */
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
