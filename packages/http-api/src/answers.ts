import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendFile } from './file-answer.js';
import type { Answer } from './operation.js';
import { sendJson } from './transport.js';

/** Sends an operation's answer. Node omits the body for HEAD. */
export async function sendAnswer(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
  if ('file' in answer) {
    if (answer.noStore === true) {
      const cache = response.getHeader('cache-control');
      response.setHeader('cache-control', cache === undefined ? 'no-store' : `${String(cache)}, no-store`);
    }
    return sendFile(request, response, answer.file);
  }
  if ('sdp' in answer) {
    response.writeHead(answer.status, {
      ...answer.headers,
      'content-type': answer.type,
      'content-length': Buffer.byteLength(answer.sdp),
    });
    response.end(answer.sdp);
    return;
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
