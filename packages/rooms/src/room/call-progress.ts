/** A telephone call that moves with its room. */
import { isIP } from 'node:net';
import { count, flag, limited, list, nullable, object, text, type Shape } from '@bloom/actors';

/** An answered call, which the phone of another node continues. */
export interface CallProgress {
  number: string;
  /** Unix milliseconds. */
  startedAt: number;
  answeredAt: number;
  /** The phone has put the room on hold. */
  held: boolean;
  dialog: {
    callId: string;
    from: string;
    to: string;
    remoteTarget: string;
    routes: readonly string[];
    localSequence: number;
    remoteSequence: number | null;
  };
  /** The o= line of the session descriptions. */
  session: { id: number; version: number; origin: string };
}

/** Maximum size of a call as JSON, in characters. A call of more does not move. */
const MAX_CALL = 8_192;

/** Returns whether another node takes the call: the texts become header fields there. */
export function canMove(call: CallProgress): boolean {
  const { dialog, session, number } = call;
  const { callId, from, to, remoteTarget, routes } = dialog;
  // oxlint-disable-next-line no-control-regex
  const isPlain = (field: string): boolean => !/[\u0000-\u001f\u007f]/.test(field);

  return (
    [number, callId, from, to, remoteTarget, ...routes].every(isPlain) &&
    isIP(session.origin) !== 0 &&
    JSON.stringify(call).length <= MAX_CALL
  );
}

const word = text(MAX_CALL);

export const callProgress: Shape<CallProgress> = limited(
  object({
    number: word,
    startedAt: count,
    answeredAt: count,
    held: flag,
    dialog: object({
      callId: word,
      from: word,
      to: word,
      remoteTarget: word,
      routes: list(word, MAX_CALL),
      localSequence: count,
      remoteSequence: nullable(count),
    } satisfies Record<keyof CallProgress['dialog'], unknown>),
    session: object({
      id: count,
      version: count,
      origin: word,
    } satisfies Record<keyof CallProgress['session'], unknown>),
  } satisfies Record<keyof CallProgress, unknown>),
  canMove,
  `a call of at most ${MAX_CALL} characters`,
);
