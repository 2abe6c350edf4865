import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { contentTypeOf, parseRange, type ServedFile } from './media-files.js';
import type { Answer } from './operations.js';
import { sendJson } from './transport.js';

const RESPONSE_LISTENERS = 20;

/** Writes what an operation answered. Node leaves the body out for HEAD. */
export async function sendAnswer(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
  if ('file' in answer) {
    if (answer.noStore === true) response.setHeader('cache-control', 'no-store');
    return sendFile(request, response, answer.file);
  }
  if ('json' in answer) return sendJson(response, answer.status, answer.json);
  if ('text' in answer) {
    response.writeHead(answer.status, {
      'content-type': 'text/plain; charset=utf-8',
      'content-length': Buffer.byteLength(answer.text),
    });
    response.end(answer.text);
    return;
  }

  response.writeHead(answer.status).end();
}

async function sendFile(request: IncomingMessage, response: ServerResponse, file: ServedFile): Promise<void> {
  // A range that depends on a validator that was never given out cannot be trusted: the whole file then.
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
  // Those of the pipeline are more than the ten after which Node suspects a leak.
  response.setMaxListeners(RESPONSE_LISTENERS);
  await pipeline(file.stream({ start, end }), response);
}
