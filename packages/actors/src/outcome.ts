/** The reply of an actor to a caller that can act on a failure: plain data, so that it can cross to another node. */
export type Outcome<T, Code extends string> = { ok: true; value: T } | { ok: false; code: Code; message: string };

type CodedError<Code extends string> = new (code: Code, message: string) => Error & { readonly code: Code };

/** Returns the result of `work`, or its error if that is a `failure`. Other errors are faults. */
export async function outcomeOf<T, Code extends string>(
  work: Promise<T>,
  failure: CodedError<Code>,
): Promise<Outcome<T, Code>> {
  try {
    return { ok: true, value: await work };
  } catch (error) {
    if (error instanceof failure) return { ok: false, code: error.code, message: error.message };
    throw error;
  }
}

/** Returns the value of a successful outcome. Throws a `failure` otherwise. */
export function valueOf<T, Code extends string>(outcome: Outcome<T, Code>, failure: CodedError<Code>): T {
  if (!outcome.ok) throw new failure(outcome.code, outcome.message);

  return outcome.value;
}
