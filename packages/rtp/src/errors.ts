/** Base of what this package throws. Parsers never throw: they answer `false`, `undefined` or `-1` on garbage. */
export class RtpError extends Error {
  /** A caller's mistake: a value that does not fit its field on the wire. */
  readonly code: 'OUT_OF_RANGE' | 'NO_ROOM';

  constructor(code: 'OUT_OF_RANGE' | 'NO_ROOM', message: string) {
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
