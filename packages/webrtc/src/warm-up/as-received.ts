/**
 * Returns a copy with the hidden class of a received datagram. Unlike `Buffer.alloc` and `Buffer.from`, native code
 * creates those from a `Uint8Array`; V8 discards code compiled for one class when it first meets the other.
 */
export function asReceived(bytes: Uint8Array): Buffer {
  return Object.setPrototypeOf(new Uint8Array(bytes), Buffer.prototype) as Buffer;
}
