export type EtfErrorCode =
  /** The bytes are no term, or none that is accepted (local format, atom cache, NaN, duplicate map key). */
  | 'MALFORMED_TERM'
  /** The bytes may be a term, but a larger one than the limits allow. */
  | 'TERM_LIMIT_EXCEEDED'
  /** A JavaScript value has no place in the external term format, or a limit forbids to send it. */
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
