type ResolveErrorCode =
  /** The name servers know no such name, or no address for it; or the text is not a host name. */
  | 'NOT_FOUND'
  /** No name server gave a usable answer. */
  | 'FAILED';

export class ResolveError extends Error {
  override readonly name = 'ResolveError';
  constructor(
    readonly code: ResolveErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Every name server answered that it cannot tell, as for a name in a broken zone. */
export class RefusedError extends ResolveError {
  constructor(message: string, options?: ErrorOptions) {
    super('FAILED', message, options);
  }
}

export function failed(message: string): ResolveError {
  return new ResolveError('FAILED', message);
}
