import { WebrtcError } from '../errors.js';

/** Bound on the quoted part of an offending line. */
const QUOTED = 120;

/** Returns the error of an unusable offer. `line` is cut and without secrets, and lines are counted from 1. */
export function invalidSdp(what: string, line?: string, lineNumber?: number): WebrtcError {
  return new WebrtcError('INVALID_SDP', line === undefined ? what : `${what} in line ${lineNumber}: ${line}`);
}

/** Cuts a line for an error message; a password is never quoted. */
export function quoteLine(line: string): string {
  if (line.startsWith('a=ice-pwd')) return 'a=ice-pwd:(hidden)';
  return line.length > QUOTED ? `${line.slice(0, QUOTED)}...` : line;
}
