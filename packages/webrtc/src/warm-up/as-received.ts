/**
 * Returns a copy with the hidden class of a received datagram. Native code creates those from a `Uint8Array`, unlike
 * `Buffer.alloc` and `Buffer.from`: code that V8 compiled for one class is discarded when it first meets the other.
 */
export function asReceived(bytes: Uint8Array): Buffer {
  return Object.setPrototypeOf(new Uint8Array(bytes), Buffer.prototype) as Buffer;
}
