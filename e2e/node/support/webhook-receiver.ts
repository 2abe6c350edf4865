// A backend that receives and remembers webhooks.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeServerMessage } from '@bloom/protocol';

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly type: string;
  readonly path: string;
}

export interface WebhookReceiver {
  readonly url: string;
  readonly received: readonly Received[];
  /** Returns the received types, of one path if given. */
  types(path?: string): string[];
  until(type: string): Promise<void>;
  close(): Promise<void>;
}

interface WebhookAnswer {
  status: number;
  afterMs?: number;
}

/** `answer` returns the status and delay of each response; its promise may hold the response back. */
export async function receiveWebhooks(
  answer: (received: Received) => WebhookAnswer | Promise<WebhookAnswer> = () => ({ status: 200 }),
): Promise<WebhookReceiver> {
  const received: Received[] = [];
  let wake: (() => void)[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const body = Buffer.concat(chunks);
      const item = { headers: request.headers, body, type: decodeServerMessage(body).type, path: request.url ?? '' };
      received.push(item);
      for (const run of wake.splice(0)) run();
      const { status, afterMs = 0 } = await answer(item);
      setTimeout(() => response.writeHead(status).end(), afterMs).unref();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    types: (path) => received.filter((one) => path === undefined || one.path === path).map(({ type }) => type),
    until: async (type) => {
      while (!received.some((one) => one.type === type)) {
        await new Promise<void>((resolve) => {
          wake = [...wake, resolve];
        });
      }
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
