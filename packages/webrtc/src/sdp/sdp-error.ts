/** Bound on the quoted part of an offending line. */
const QUOTED = 120;

/** An offer that cannot be used. */
export class SdpError extends Error {
  override readonly name = 'SdpError';
  readonly code = 'INVALID_SDP';
  constructor(
    what: string,
    /** The offending line without its line end, cut and without secrets; absent when no single line is at fault. */
    readonly line?: string,
    /** Counted from 1. */
    readonly lineNumber?: number,
  ) {
    super(line === undefined ? what : `${what} in line ${lineNumber}: ${line}`);
  }
}

/** Cuts a line for an error message; a password is never quoted. */
export function quoteLine(line: string): string {
  if (line.startsWith('a=ice-pwd')) return 'a=ice-pwd:(hidden)';
  return line.length > QUOTED ? `${line.slice(0, QUOTED)}...` : line;
}
