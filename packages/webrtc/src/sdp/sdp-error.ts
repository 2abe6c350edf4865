import { WebrtcError } from '../errors.js';

/** Maximum length of the quoted part of an offending line. */
const QUOTED = 120;

/** Returns the error for an unusable offer. `line` is already shortened and free of secrets; lines count from 1. */
export function invalidSdp(what: string, line?: string, lineNumber?: number): WebrtcError {
  return new WebrtcError('INVALID_SDP', line === undefined ? what : `${what} in line ${lineNumber}: ${line}`);
}

/** Shortens a line for an error message. Never quotes a password. */
export function quoteLine(line: string): string {
  if (line.startsWith('a=ice-pwd')) return 'a=ice-pwd:(hidden)';
  return line.length > QUOTED ? `${line.slice(0, QUOTED)}...` : line;
}
