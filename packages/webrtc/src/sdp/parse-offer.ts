import {
  DEFAULT_SDP_LIMITS,
  type OfferedMedia,
  type OfferedTransport,
  type SdpLimits,
  type SdpOffer,
} from './offer.js';
import { MediaParser, type MediaSection } from './parse-media.js';
import { WebrtcError } from '../errors.js';
import { invalidSdp, quoteLine } from './sdp-error.js';
import { TransportParser } from './parse-transport.js';

const MAX_MID_LENGTH = 16;
const MID = '\na=mid:';

/**
 * Parses an offer.
 * @throws WebrtcError INVALID_SDP when the offer is unusable; no text causes any other error
 */
export function parseOffer(sdp: string, limits: SdpLimits = DEFAULT_SDP_LIMITS): SdpOffer {
  return parse(sdp, limits, false);
}

/**
 * Parses an answer, which has the lines of an offer. Its DTLS side may be passive.
 * @throws WebrtcError INVALID_SDP as `parseOffer`
 */
export function parseAnswer(sdp: string, limits: SdpLimits): SdpOffer {
  return parse(sdp, limits, true);
}

function parse(sdp: string, limits: SdpLimits, isAnswer: boolean): SdpOffer {
  checkLimits(sdp, limits);

  const sessionTransport = new TransportParser();
  const media: MediaSection[] = [];
  let current: MediaParser | undefined;
  const known = new Map<string, MediaParser>();
  const bundles: string[][] = [];
  let sessionDirection: string | undefined;
  let extmapAllowMixed = false;

  forEachLine(sdp, (line, lineNumber, start) => {
    const fail = (what: string): never => {
      throw invalidSdp(what, quoteLine(line), lineNumber);
    };
    if (lineNumber === 1 && line !== 'v=0') fail('an offer must start with v=0');
    if (line[1] !== '=') fail('no "=" after the type');
    if (line.startsWith('m=')) {
      const section = sectionAt(sdp, start);
      const same = section && known.get(section.rest);
      if (section !== undefined && same !== undefined) {
        media.push(same.again(section.mid));
        return section.end;
      }
      current = new MediaParser(line, limits, fail);
      media.push(current);
      if (section !== undefined) known.set(section.rest, current);
      return undefined;
    }
    if (!line.startsWith('a=')) return undefined;
    const colon = line.indexOf(':');
    const name = colon < 0 ? line.slice(2) : line.slice(2, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1);
    if (name === 'extmap-allow-mixed') extmapAllowMixed = true;
    if (current !== undefined) {
      current.attribute(name, value, fail);
    } else if (name === 'group') {
      const [semantics, ...mids] = value.split(' ');
      if (semantics === 'BUNDLE') bundles.push(mids);
    } else if (isDirection(name)) {
      sessionDirection = name;
    } else {
      sessionTransport.attribute(name, value, fail);
    }
    return undefined;
  });

  if (media.length === 0) throw invalidSdp('the offer has no m-line');
  const seen = new Set<string>();
  for (const { mid, line, lineNumber } of media.map((m, index) => ({ ...m.identity(), lineNumber: index + 1 }))) {
    const what = `m-line ${lineNumber} (${quoteLine(line)})`;
    if (mid === undefined || !isMid(mid)) throw invalidSdp(`${what} has no usable a=mid`);
    if (seen.has(mid)) throw invalidSdp(`${what} repeats the mid ${mid}`);
    seen.add(mid);
  }

  // All media shares one transport: the first BUNDLE group, or the only m-line of an offer without groups.
  const bundle = new Set(bundles[0] ?? [media[0]?.identity().mid ?? '']);
  const bundled = media.filter((m) => bundle.has(m.identity().mid ?? ''));
  const session = { direction: sessionDirection, allowsMixed: extmapAllowMixed };
  return {
    transport: chooseTransport(bundled, (media) => media.transport.finish(sessionTransport, isAnswer)),
    extmapAllowMixed,
    media: media.map((m): OfferedMedia => m.finish(bundled.includes(m), session)),
  };
}

/** Returns the transport, from the first bundled m-line that has one (RFC 8843 section 7.1.3) or the session level. */
function chooseTransport(
  bundled: readonly MediaSection[],
  finish: (media: MediaSection) => OfferedTransport | WebrtcError,
): OfferedTransport {
  let problem: WebrtcError | undefined;
  for (const media of bundled) {
    const result = finish(media);
    if (!(result instanceof WebrtcError)) return result;
    problem ??= result;
  }
  throw problem ?? invalidSdp('the BUNDLE group names no m-line of the offer');
}

function checkLimits(sdp: string, limits: SdpLimits): void {
  if (sdp.length > limits.maxLength) {
    throw invalidSdp(`the offer has ${sdp.length} characters, more than ${limits.maxLength}`);
  }
  let lines = 0;
  let mediaLines = 0;
  for (let start = 0; start < sdp.length; ) {
    const found = sdp.indexOf('\n', start);
    const end = found < 0 ? sdp.length : found;
    lines += 1;
    if (lines > limits.maxLines) throw invalidSdp(`the offer has more than ${limits.maxLines} lines`);
    if (end - start > limits.maxLineLength) {
      throw invalidSdp(`more than ${limits.maxLineLength} characters`, quoteLine(sdp.slice(start, end)), lines);
    }
    if (sdp.startsWith('m=', start)) mediaLines += 1;
    if (mediaLines > limits.maxMedia) throw invalidSdp(`the offer has more than ${limits.maxMedia} m-lines`);
    start = end + 1;
  }
}

/** Visits all lines that are not empty. `visit` returns where to go on, the start of another line, or undefined. */
function forEachLine(
  sdp: string,
  visit: (line: string, lineNumber: number, start: number) => number | undefined,
): void {
  let lineNumber = 0;
  for (let start = 0; start < sdp.length; ) {
    const found = sdp.indexOf('\n', start);
    const next = found < 0 ? sdp.length : found;
    const end = next > start && sdp[next - 1] === '\r' ? next - 1 : next;
    lineNumber += 1;
    let goesOn = next + 1;
    if (end > start) {
      const line = sdp.slice(start, end);
      // Text echoed in an answer must not be able to start a new line.
      if (hasControlCharacter(line)) throw invalidSdp('a control character', undefined, lineNumber);
      const skipsTo = visit(line, lineNumber, start);
      for (; skipsTo !== undefined && goesOn < skipsTo; goesOn = lineAfter(sdp, goesOn)) lineNumber += 1;
    }
    start = goesOn;
  }
}

/** Returns the start of the line after this one. */
function lineAfter(sdp: string, start: number): number {
  const found = sdp.indexOf('\n', start);

  return found < 0 ? sdp.length : found + 1;
}

/**
 * Returns the media section that starts here: its mid, all of its text but that, and its end. Sections in which a
 * client offers to receive differ in their mid only, so most of a large offer has to be read once. Undefined for a
 * section without a usable mid, or with several.
 */
function sectionAt(sdp: string, start: number): { mid: string; rest: string; end: number } | undefined {
  const next = sdp.indexOf('\nm=', start);
  const end = next < 0 ? sdp.length : next + 1;
  const text = sdp.slice(start, end);
  const at = text.indexOf(MID);
  if (at < 0 || text.includes(MID, at + 1)) return undefined;
  const after = lineAfter(text, at + 1);
  const mid = text.slice(at + MID.length, after).replace(/\r?\n$/, '');

  return isMid(mid) ? { mid, rest: text.slice(0, at + 1) + text.slice(after), end } : undefined;
}

function hasControlCharacter(line: string): boolean {
  for (let index = 0; index < line.length; index++) {
    const code = line.charCodeAt(index);
    if ((code < 0x20 && code !== 0x09) || code === 0x7f || code === 0x2028 || code === 0x2029) return true;
  }
  return false;
}

function isMid(mid: string): boolean {
  return mid.length <= MAX_MID_LENGTH && /^[\x21-\x7e]+$/.test(mid);
}

function isDirection(name: string): boolean {
  return name === 'sendrecv' || name === 'sendonly' || name === 'recvonly' || name === 'inactive';
}
