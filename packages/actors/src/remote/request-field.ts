import type { Term } from '@bloom/etf';
import type { Message } from '../envelope.js';
import { MAX_REQUEST_ID } from '../observation/request.js';

/**
 * The request id travels as an extra field of the message. A node that does not know the field passes it to the actor,
 * whose protocol ignores it.
 */
const FIELD = '$req';

export function withRequestId(message: Message, requestId: string): Message {
  return { ...message, [FIELD]: requestId } as Message;
}

/** Removes the request id from another node's message and returns it, or undefined if it is missing or invalid. */
export function takeRequestId(term: Term): string | undefined {
  const record = term as { [FIELD]?: unknown };
  const id = record[FIELD];
  if (id === undefined) return undefined;
  delete record[FIELD];

  return typeof id === 'string' && id.length <= MAX_REQUEST_ID ? id : undefined;
}
