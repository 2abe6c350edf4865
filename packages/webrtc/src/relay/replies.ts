import { Attribute, MessageClass, type Method, StunError, type StunErrorCode } from '../stun/constants.js';
import type { StunMessage } from '../stun/message.js';
import { StunWriter } from '../stun/writer.js';
import type { RelayClient, RelayUserEntry } from './allocation.js';

export const RELAY_REALM = 'bloom';

/** An authenticated request. */
export interface RelayRequest {
  client: RelayClient;
  message: StunMessage;
  user: RelayUserEntry;
  nowMs: number;
}

/** Returns a 401 or 438 reply with the realm and nonce to use. */
export function challengeReply(message: StunMessage, error: StunErrorCode, nonce: string): Buffer {
  return new StunWriter(message.method as Method, MessageClass.error, message.transactionId)
    .error(error)
    .text(Attribute.realm, RELAY_REALM)
    .text(Attribute.nonce, nonce)
    .finish();
}

export function success({ message }: RelayRequest): StunWriter {
  return new StunWriter(message.method as Method, MessageClass.success, message.transactionId);
}

/** Sends an error reply; a 420 lists the unknown attributes. */
export function refuse(request: RelayRequest, error: StunErrorCode): void {
  const { message } = request;
  const reply = new StunWriter(message.method as Method, MessageClass.error, message.transactionId).error(error);
  if (error === StunError.unknownAttribute) reply.unknownAttributes(message.unknownRequired);
  finish(request, reply);
}

/** Signs the reply with the user's key and sends it. */
export function finish({ client, user }: RelayRequest, reply: StunWriter): void {
  client.flow.send(reply.integrity(user.key).finish());
}
