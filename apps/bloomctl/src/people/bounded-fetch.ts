import type { IncomingMessage } from 'node:http';
import type { Fetch, FetchedAnswer } from '@bloom/server-sdk';
import { EXIT, Failure } from '../exit.js';
import { size } from '../text/units.js';

/** Headers that are read. They are printed as they are, so without what a terminal would interpret. */
const PRINTABLE = /^[\u0020-\u007e]{1,1000}$/;

/**
 * Returns a `fetch` that reads at most so many bytes of an answer and follows no redirect. Loading the global one takes
 * longer than the rest of a command: 0.1 s of CPU.
 */
export function boundedFetch(maxBytes: number): Fetch {
  return async (url, { method = 'GET', headers, body, signal }) => {
    const { request } = url.protocol === 'https:' ? await import('node:https') : await import('node:http');

    return await new Promise<FetchedAnswer>((resolve, reject) => {
      // Node hides the reason of the signal, such as a timeout, behind an error of the socket.
      const fail = (error: unknown): void => reject(signal?.aborted === true ? (signal.reason as Error) : error);
      const text = typeof body === 'string' ? body : '';
      const sent = request(url, {
        method,
        headers: { ...(headers as Record<string, string>), 'content-length': Buffer.byteLength(text) },
        ...(signal === null || signal === undefined ? {} : { signal }),
      });
      sent.on('error', fail);
      sent.on('response', (response) => {
        textOf(response, maxBytes).then((answer) => resolve(answerOf(response, answer)), fail);
      });
      sent.end(text);
    });
  };
}

/** @throws Failure when it is longer */
async function textOf(response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) {
      throw new Failure(EXIT.fault, `the answer of the server is longer than ${size(maxBytes)}`, {
        advice: 'ask for less at a time, if the command has --limit',
      });
    }
  }

  return Buffer.concat(chunks).toString();
}

function answerOf({ statusCode: status = 0, statusMessage: statusText = '', headers }: IncomingMessage, text: string) {
  return {
    ok: status >= 200 && status < 300,
    status,
    statusText,
    text: () => Promise.resolve(text),
    headers: {
      get: (name: string) => {
        const value = headers[name];
        return typeof value === 'string' && PRINTABLE.test(value) ? value : null;
      },
    },
  };
}
