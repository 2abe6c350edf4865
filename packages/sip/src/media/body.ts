import type { SipHeaders } from '../headers.js';

/** Maximum number of parts read per body, including nested ones; a session description comes first or second. */
const MAX_PARTS = 16;
const MAX_DEPTH = 2;
const NONE: Buffer = Buffer.alloc(0);

/**
 * Returns the session description in a message body: the body itself, or the first application/sdp part of a multipart
 * body (RFC 5621 section 3), which may also contain ISUP or a location. Empty when there is none; undefined for a body
 * of another type.
 */
export function sessionDescription({ headers, body }: { headers: SipHeaders; body: Buffer }): Buffer | undefined {
  if (body.length === 0) return NONE;
  const type = headers.get('Content-Type');
  // Some phones omit the type.
  if (type === undefined || isSdp(type)) return body;

  return isMultipart(type) ? (inParts(body, type, { left: MAX_PARTS, depth: MAX_DEPTH }) ?? NONE) : undefined;
}

function inParts(body: Buffer, type: string, limits: { left: number; depth: number }): Buffer | undefined {
  const boundary = /;\s*boundary\s*=\s*(?:"([^"\r\n]{1,70})"|([^\s;"]{1,70}))/i.exec(type);
  if (boundary === null) return undefined;
  const delimiter = Buffer.from(`--${boundary[1] ?? boundary[2]}`, 'latin1');
  const end = Buffer.concat([Buffer.from('\r\n'), delimiter]);
  let start = startOfPart(body, delimiter, 0);
  while (start !== undefined && limits.left > 0) {
    limits.left -= 1;
    const next = body.indexOf(end, start - 2);
    // Without the closing delimiter, the last part may be truncated.
    if (next < 0) return undefined;
    const found = inPart(body.subarray(start, Math.max(start, next)), limits);
    if (found !== undefined) return found;
    start = startOfPart(body, delimiter, next);
  }

  return undefined;
}

/** Returns where the part after the next delimiter starts; undefined after the closing one. */
function startOfPart(body: Buffer, delimiter: Buffer, from: number): number | undefined {
  const at = body.indexOf(delimiter, from);
  if (at < 0) return undefined;
  const lineEnd = body.indexOf('\r\n', at + delimiter.length);
  const rest =
    lineEnd < 0 ? '--' : body.toString('latin1', at + delimiter.length, Math.min(lineEnd, at + delimiter.length + 2));

  return rest === '--' ? undefined : lineEnd + 2;
}

function inPart(part: Buffer, limits: { left: number; depth: number }): Buffer | undefined {
  // A part without header fields starts with the empty line and is plain text.
  const end = part.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const head = part.toString('latin1', 0, end).replaceAll(/\r\n[ \t]+/g, ' ');
  const type = field(head, 'content-type') ?? '';
  const encoding = field(head, 'content-transfer-encoding')?.toLowerCase() ?? 'binary';
  const content = part.subarray(end + 4);
  if (isSdp(type)) return ['binary', '8bit', '7bit'].includes(encoding) ? content : undefined;
  if (!isMultipart(type) || limits.depth <= 1) return undefined;

  return inParts(content, type, { left: limits.left, depth: limits.depth - 1 });
}

function field(head: string, name: string): string | undefined {
  return new RegExp(`^${name}[ \\t]*:[ \\t]*([^\\r\\n]*)`, 'im').exec(head)?.[1]?.trim();
}

function isSdp(type: string): boolean {
  return /^\s*application\/sdp\s*(;|$)/i.test(type);
}

function isMultipart(type: string): boolean {
  return /^\s*multipart\//i.test(type);
}
