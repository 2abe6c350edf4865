/** A server with the shape of the API and scripted answers: the SDK is tested only over real sockets. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { decodeServerMessage, encodeServerMessage } from '@bloom/protocol';
import { type WebSocket, WebSocketServer } from 'ws';

export interface TestServer {
  readonly url: string;
  close(): Promise<void>;
}

export async function serve(
  answer: (request: IncomingMessage, response: ServerResponse, body: string) => void,
  onSocket: (socket: WebSocket) => void = () => undefined,
): Promise<TestServer> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => answer(request, response, body));
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', onSocket);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      for (const client of sockets.clients) client.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Refuses every connection, on an open connection's own port: no server can take it, unlike a closed one's. */
export async function refuse(): Promise<TestServer> {
  const server = await serve(() => undefined);
  const held = connect(Number(new URL(server.url).port), '127.0.0.1');
  await once(held, 'connect');

  return {
    url: `http://127.0.0.1:${held.localPort}`,
    close: async () => {
      held.destroy();
      await server.close();
    },
  };
}

/** Accepts any token and subscription, then runs `then`. */
export function subscribing(then: (socket: WebSocket) => void): (socket: WebSocket) => void {
  return (socket) => {
    socket.on('message', (data: Buffer) => {
      const message = decodeServerMessage(data);
      if (message.type === 'authRequest') socket.send(encodeServerMessage({ type: 'authenticated' }));
      if (message.type === 'subscribeRequest') {
        socket.send(encodeServerMessage({ type: 'subscribeResponse', eventType: message.eventType }));
        then(socket);
      }
    });
  };
}
