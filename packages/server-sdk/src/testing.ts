/** A server of the API's shape that says what a test wants: the SDK is used against real sockets only. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type WebSocket, WebSocketServer } from 'ws';
import { type ServerMessage, ServerMessageSchema } from './gen/jellyfish/server_notifications_pb.js';

export type Content = ServerMessage['content'];

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

/** The Content of a message as JSON-like input: `message({ case: 'roomCreated', value: { roomId: 'x' } })`. */
export function message(content: { case: string; value: object }): Uint8Array {
  return toBinary(ServerMessageSchema, create(ServerMessageSchema, { content: content as never }));
}

export function contentOf(data: Buffer): Content {
  return fromBinary(ServerMessageSchema, data).content;
}

/** Accepts any token and subscription, then runs `then`. */
export function subscribing(then: (socket: WebSocket) => void): (socket: WebSocket) => void {
  return (socket) => {
    socket.on('message', (data: Buffer) => {
      const content = contentOf(data);
      if (content.case === 'authRequest') socket.send(message({ case: 'authenticated', value: {} }));
      if (content.case === 'subscribeRequest') {
        const { eventType } = content.value;
        socket.send(message({ case: 'subscribeResponse', value: { eventType } }));
        then(socket);
      }
    });
  };
}
