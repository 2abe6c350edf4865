import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const servers: Server[] = [];

/** Starts a server with scripted answers, as real as a hostile one. Returns its address. */
export async function serveHttp(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');

  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export interface Asked {
  readonly line: string;
  readonly authorization: string | undefined;
  readonly body: unknown;
}

/** Starts a server that answers from a table by method and path, and notes what it was asked. A function is called. */
export async function serveAnswers(
  answers: Readonly<Record<string, unknown>>,
): Promise<{ url: string; asked: readonly Asked[] }> {
  const asked: Asked[] = [];
  const url = await serveHttp(async (request, response) => {
    const body = await bodyOf(request);
    const line = `${request.method} ${request.url}`;
    asked.push({ line, authorization: request.headers.authorization, body });
    const given = answers[line];
    const answer: unknown = typeof given === 'function' ? given() : given;
    const status = answer === undefined ? 404 : answer === null ? 204 : 200;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(
      status === 404 ? '{"errors":"Room none does not exist"}' : status === 204 ? '' : JSON.stringify(answer),
    );
  });

  return { url, asked };
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of request) text += String(chunk);

  return text === '' ? undefined : JSON.parse(text);
}

export function closeServers(): void {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
}
