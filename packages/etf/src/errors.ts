export type EtfErrorCode =
  /** The bytes are not a term, or not one that is accepted (local format, atom cache, NaN, duplicate map key). */
  | 'MALFORMED_TERM'
  /** The bytes may be a term, but one that exceeds the limits. */
  | 'TERM_LIMIT_EXCEEDED'
  /** A JavaScript value has no counterpart in the external term format, or exceeds a limit. */
  | 'NOT_ENCODABLE';

/** Every error of this package; `code` is stable. */
export class EtfError extends Error {
  override readonly name = 'EtfError';

  constructor(
    readonly code: EtfErrorCode,
    message: string,
  ) {
    super(message);
  }
}

export function malformedTerm(what: string, offset: number): EtfError {
  return new EtfError('MALFORMED_TERM', `${what} at byte ${offset}`);
}

export function termLimitExceeded(limit: string, allowed: number, offset: number): EtfError {
  return new EtfError('TERM_LIMIT_EXCEEDED', `the term at byte ${offset} exceeds the limit of ${allowed} ${limit}`);
}

export function notEncodable(message: string): EtfError {
  return new EtfError('NOT_ENCODABLE', message);
}
