import { hostCandidates } from '@bloom/webrtc';
import { WhipError } from './errors.js';

const MAX_LENGTH = 64 * 1024;
const MAX_LINES = 1_000;

/**
 * Returns the ICE credentials of an `application/trickle-ice-sdpfrag` (RFC 8840, section 9), or null when it has none.
 * Ignores candidates: an ICE-lite server learns the client's addresses from its checks.
 * @throws WhipError INVALID_FRAGMENT
 */
export function parseFragment(text: string): { ufrag: string; pwd: string } | null {
  if (text.length > MAX_LENGTH) throw invalid(`it has more than ${MAX_LENGTH} characters`);
  const lines = text.split('\n', MAX_LINES + 1);
  if (lines.length > MAX_LINES) throw invalid(`it has more than ${MAX_LINES} lines`);
  let ufrag: string | undefined;
  let pwd: string | undefined;
  for (const [index, full] of lines.entries()) {
    const line = full.endsWith('\r') ? full.slice(0, -1) : full;
    if (line === '') continue;
    if (!/^[a-z]=/.test(line)) throw invalid(`line ${index + 1} is not an SDP line`);
    if (line.startsWith('a=ice-ufrag:')) ufrag ??= line.slice('a=ice-ufrag:'.length);
    if (line.startsWith('a=ice-pwd:')) pwd ??= line.slice('a=ice-pwd:'.length);
  }
  if (ufrag === undefined && pwd === undefined) return null;
  // RFC 8839, section 5.4. A colon would end the fragment early in a STUN username.
  if (ufrag === undefined || !/^[\x21-\x39\x3b-\x7e]{4,256}$/.test(ufrag)) {
    throw invalid('an ICE user fragment has 4 to 256 characters');
  }
  if (pwd === undefined || !/^[\x21-\x7e]{22,256}$/.test(pwd))
    throw invalid('an ICE password has 22 to 256 characters');

  return { ufrag, pwd };
}

export interface FragmentOptions {
  ice: { ufrag: string; pwd: string };
  endpoint: { address: string; secondAddress?: string; port: number };
  /** The m-line that represents the bundle. */
  media: { type: string; protocol: string; mid: string; formats: readonly string[] };
  mids: readonly string[];
}

/** Returns the server's answer to an ICE restart (RFC 9725, section 4.3.3). */
export function writeFragment({ ice, endpoint, media, mids }: FragmentOptions): string {
  return [
    'a=ice-lite',
    'a=ice-options:trickle',
    `a=group:BUNDLE ${mids.join(' ')}`,
    `m=${media.type} 9 ${media.protocol} ${media.formats.join(' ')}`,
    `a=mid:${media.mid}`,
    `a=ice-ufrag:${ice.ufrag}`,
    `a=ice-pwd:${ice.pwd}`,
    ...hostCandidates(endpoint).map((candidate) => `a=${candidate}`),
    'a=end-of-candidates',
    '',
  ].join('\r\n');
}

function invalid(reason: string): WhipError {
  return new WhipError('INVALID_FRAGMENT', `The SDP fragment is not usable: ${reason}`);
}
