import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { ByteRange, ServedFile } from '@bloom/files';

const RESPONSE_LISTENERS = 20;

/** Sends a file, or the requested range of it, and closes it. */
export async function sendFile(request: IncomingMessage, response: ServerResponse, file: ServedFile): Promise<void> {
  // A range that depends on an unknown validator gets the whole file.
  const header = request.headers['if-range'] === undefined ? request.headers.range : undefined;
  const range = parseRange(header, file.size);

  response.setHeader('accept-ranges', 'bytes');
  if (range === 'unsatisfiable') {
    await file.close();
    response.writeHead(416, { 'content-range': `bytes */${file.size}`, 'content-length': 0 }).end();
    return;
  }

  const { start, end } = range ?? { start: 0, end: file.size - 1 };
  response.statusCode = range === undefined ? 200 : 206;
  response.setHeader('content-type', contentTypeOf(file.name));
  response.setHeader('content-length', end - start + 1);
  if (range !== undefined) response.setHeader('content-range', `bytes ${start}-${end}/${file.size}`);

  if (request.method === 'HEAD' || file.size === 0) {
    await file.close();
    response.end();
    return;
  }

  if (file.bytes !== undefined) {
    response.end(range === undefined ? file.bytes : file.bytes.subarray(start, end + 1));
    return;
  }
  // The pipeline adds more than the ten listeners above which Node suspects a leak.
  response.setMaxListeners(RESPONSE_LISTENERS);
  await pipeline(file.stream({ start, end }), response);
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  m3u8: 'application/vnd.apple.mpegurl',
  ogg: 'audio/ogg',
  webm: 'video/webm',
  json: 'application/json',
};

/** Returns the content type: whatever is not listed is MP4. */
function contentTypeOf(name: string): string {
  return CONTENT_TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'video/mp4';
}

/**
 * Parses the single range of a `Range` header; `unsatisfiable` if it starts after the end. Undefined = the whole file:
 * no header, another unit, several ranges or invalid text.
 */
export function parseRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '');
  const first = match?.[1];
  const last = match?.[2];
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined;

  if (first === '') {
    const length = Number(last);
    return length === 0 || size === 0 ? 'unsatisfiable' : { start: Math.max(0, size - length), end: size - 1 };
  }

  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < start) return undefined;

  return start >= size ? 'unsatisfiable' : { start, end };
}
