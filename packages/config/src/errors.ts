/** A setting with which the node cannot start. The message names the variable and the value. */
export class ConfigError extends Error {
  readonly code = 'INVALID_CONFIGURATION';
  /** Host name to resolve first: if that fails, it is the error to report instead of this one. */
  readonly hostFirst: string | undefined;

  constructor(
    /** Offending variable; the first of several. */
    readonly variable: string,
    message: string,
    options?: ErrorOptions & { hostFirst?: string },
  ) {
    super(message, options);
    this.hostFirst = options?.hostFirst;
    this.name = 'ConfigError';
  }
}

/** Replaces a secret. Its constant length does not reveal the secret's length. */
export const MASK = '********';

/** Returns the value for printing: quoted, truncated to 200 characters, and masked if secret. */
export function printableValue(value: string, secret: boolean): string {
  if (secret && value !== '') return MASK;

  return JSON.stringify(value.length > 200 ? `${value.slice(0, 200)}...` : value);
}
