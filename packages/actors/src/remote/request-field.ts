import type { Term } from '@bloom/etf';
import type { Message } from '../cell/envelope.js';
import { MAX_REQUEST_ID } from '../observation/request.js';

/**
 * The id of a request travels as one more field of the message. A node that does not know it passes it to the actor as a
 * field that no protocol has.
 */
const FIELD = '$req';

export function withRequestId(message: Message, requestId: string): Message {
  return { ...message, [FIELD]: requestId } as Message;
}

/** Removes the id from a message of another node and returns it; undefined without one, or with an invalid one. */
export function takeRequestId(term: Term): string | undefined {
  const record = term as { [FIELD]?: unknown };
  const id = record[FIELD];
  if (id === undefined) return undefined;
  delete record[FIELD];

  return typeof id === 'string' && id.length <= MAX_REQUEST_ID ? id : undefined;
}
