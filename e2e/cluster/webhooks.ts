// A backend that receives webhooks, reachable from the lab's hosts.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeServerMessage } from '@bloom/protocol';

export interface WebhookReceiver {
  readonly url: string;
  /** `<type> <room id>` of each webhook received. */
  readonly heard: readonly string[];
  close(): Promise<void>;
}

/** `onBody` is called with each webhook received. */
export async function receiveWebhooksAt(address: string, onBody?: (body: Buffer) => void): Promise<WebhookReceiver> {
  const heard: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      onBody?.(body);
      const message = decodeServerMessage(body);
      heard.push(`${message.type} ${'roomId' in message ? message.roomId : '-'}`);
      response.writeHead(200).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));

  return {
    url: `http://${address}:${(server.address() as AddressInfo).port}`,
    heard,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
