/** A value with which the node cannot start. The message names the variable and the value. */
export class ConfigError extends Error {
  readonly code = 'INVALID_CONFIGURATION';
  /** Host name that is checked first: when it cannot be resolved, that is the fault to report. */
  readonly hostFirst: string | undefined;

  constructor(
    /** Variable at fault, the first of several. */
    readonly variable: string,
    message: string,
    options?: ErrorOptions & { hostFirst?: string },
  ) {
    super(message, options);
    this.hostFirst = options?.hostFirst;
    this.name = 'ConfigError';
  }
}

/** Replaces a secret. Its constant length does not reveal that of the secret. */
export const MASK = '********';

/** Returns the value for printing: quoted, cut to 200 characters, masked when secret. */
export function printableValue(value: string, secret: boolean): string {
  if (secret && value !== '') return MASK;

  return JSON.stringify(value.length > 200 ? `${value.slice(0, 200)}...` : value);
}
