type RtpErrorCode =
  /** A value does not fit its field on the wire. */
  | 'OUT_OF_RANGE'
  /** The buffer is too small for the data to be written. */
  | 'NO_ROOM';

/** A caller's mistake. Parsers never throw: on garbage they return `false`, `undefined` or `-1`. */
export class RtpError extends Error {
  readonly code: RtpErrorCode;

  constructor(code: RtpErrorCode, message: string) {
    super(message);
    this.name = 'RtpError';
    this.code = code;
  }
}

export function requireInteger(name: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RtpError('OUT_OF_RANGE', `${name} must be an integer from ${min} to ${max}, got ${value}`);
  }
  return value;
}
