import type { Term } from '@bloom/etf';
import type { Message, RequestOf } from '../envelope.js';
import { MAX_REQUEST_ID } from '../observation/request.js';

/**
 * The request travels as extra fields of the message. A node that does not know them passes them to the actor, whose
 * protocol ignores them.
 */
const ID = '$req';
/** Set on a message that is not recorded as a step; see `FanOut`. Earlier releases only know the id, and record it. */
const OMITTED = '$omitted';

export function withRequest(message: Message, { requestId, isOmitted }: RequestOf): Message {
  return { ...message, [ID]: requestId, ...(isOmitted === true ? { [OMITTED]: true } : {}) } as Message;
}

/** Removes the fields from another node's message. Returns no id if it is missing or invalid. */
export function takeRequest(term: Term): Required<RequestOf> {
  const record = term as { [ID]?: unknown; [OMITTED]?: unknown };
  const { [ID]: id, [OMITTED]: omitted } = record;
  if (id !== undefined) delete record[ID];
  if (omitted !== undefined) delete record[OMITTED];

  return {
    requestId: typeof id === 'string' && id.length <= MAX_REQUEST_ID ? id : undefined,
    isOmitted: omitted === true,
  };
}
