/** Base of every error this package throws; `code` is stable. */
export abstract class EtfError extends Error {
  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The bytes are not a term, or not one we accept (local format, atom cache reference, NaN, duplicate map key). */
export class MalformedTerm extends EtfError {
  readonly code = 'MALFORMED_TERM';
  constructor(
    what: string,
    readonly offset: number,
  ) {
    super(`${what} at byte ${offset}`);
  }
}

/** The bytes may be a term, but a larger one than the limits of this decoder allow. */
export class TermLimitExceeded extends EtfError {
  readonly code = 'TERM_LIMIT_EXCEEDED';
  constructor(
    readonly limit: string,
    readonly allowed: number,
    readonly offset: number,
  ) {
    super(`the term at byte ${offset} exceeds the limit of ${allowed} ${limit}`);
  }
}

/** A JavaScript value has no place in the external term format, or a limit forbids to send it. */
export class NotEncodable extends EtfError {
  readonly code = 'NOT_ENCODABLE';
}
