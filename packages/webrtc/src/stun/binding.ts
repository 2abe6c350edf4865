/** Client side of a STUN binding (RFC 8489 section 2), which asks a server which address it sees. */
import { addressText } from '@bloom/net';
import { Attribute, MessageClass, Method } from './constants.js';
import { StunMessage } from './message.js';
import { StunWriter } from './writer.js';

/** Returns a binding request. `transactionId` consists of 12 random bytes. */
export function bindingRequest(transactionId: Uint8Array): Buffer {
  return new StunWriter(Method.binding, MessageClass.request, transactionId).fingerprint().finish();
}

/** Returns the address from the response to that request; undefined for anything else. */
export function bindingAddress(datagram: Buffer, transactionId: Uint8Array): string | undefined {
  const message = StunMessage.parse(datagram);
  if (message?.method !== Method.binding || message.messageClass !== MessageClass.success) return undefined;
  if (!message.transactionId.equals(transactionId)) return undefined;
  const address = message.xorAddress(Attribute.xorMappedAddress);

  return address === undefined ? undefined : addressText(address.bytes);
}
