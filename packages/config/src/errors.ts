import { MASK } from './mask.js';

/** A value that the node cannot start with. The message names the variable and the offending value. */
export class ConfigError extends Error {
  readonly code = 'INVALID_CONFIGURATION';
  /** The check of this host name comes first: when it cannot be resolved, that is what the node cannot start with. */
  readonly hostFirst: string | undefined;

  constructor(
    /** The variable at fault, the first one when several are. */
    readonly variable: string,
    message: string,
    options?: ErrorOptions & { hostFirst?: string },
  ) {
    super(message, options);
    this.hostFirst = options?.hostFirst;
    this.name = 'ConfigError';
  }
}

/** The value as it may be printed: quoted, cut to 200 characters, masked when secret. */
export function printableValue(value: string, secret: boolean): string {
  if (secret && value !== '') return MASK;

  return JSON.stringify(value.length > 200 ? `${value.slice(0, 200)}...` : value);
}
