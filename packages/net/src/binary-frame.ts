/**
 * Returns a complete server-to-client websocket frame (RFC 6455 section 5.2): binary, final and unmasked, so all
 * receivers can share it. ws builds its header anew for each of them and writes it as a second buffer, which takes
 * twice as long in a process that has just started.
 */
export function binaryFrame(payload: Uint8Array): Buffer {
  const length = payload.byteLength;
  const headerLength = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(headerLength + length);

  frame[0] = 0x82;
  if (headerLength === 2) {
    frame[1] = length;
  } else if (headerLength === 4) {
    frame[1] = 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = 127;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
  frame.set(payload, headerLength);

  return frame;
}
