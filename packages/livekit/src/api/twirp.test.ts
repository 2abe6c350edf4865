import { createServer, request, type ClientRequest, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ListRoomsRequest, ListRoomsResponse, Room } from '@livekit/protocol';
import { LivekitError } from '../errors.js';
import type { Claims } from '../grants.js';
import { method, missing, Twirp } from './twirp.js';

const failures: unknown[] = [];
let server: Server;

const twirp = new Twirp(
  {
    RoomService: {
      ForwardParticipant: missing('forwarding'),
      ListRooms: method(ListRoomsRequest, 'roomList', async ({ names }) => {
        const emptyTimeout = names.includes('endless') ? 2 ** 40 : 1;
        return new ListRoomsResponse({ rooms: [new Room({ name: 'kitchen', emptyTimeout })] });
      }),
    },
  },
  {
    authenticate: async ({ headers }): Promise<Claims> => ({
      iss: 'k',
      exp: 0,
      video: { roomList: headers.authorization === 'list' },
    }),
    toError: (cause) => (cause instanceof LivekitError ? cause : new LivekitError('INTERNAL', 'internal error')),
  },
);

beforeEach(async () => {
  failures.length = 0;
  server = createServer((incoming, response) => {
    const pathname = incoming.url ?? '';
    twirp.serve(incoming, response, { pathname, refused: () => undefined }).catch((error: unknown) => {
      failures.push(error);
      response.destroy();
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** Begins a call; the body may end later. */
function begin(
  name = 'ListRooms',
  { authorization = 'list', type = 'application/protobuf' } = {},
): { asked: ClientRequest; answered: Promise<IncomingMessage> } {
  const { port } = server.address() as AddressInfo;
  const headers = { 'content-type': type, authorization };
  const path = `/twirp/livekit.RoomService/${name}`;
  const asked = request({ host: '127.0.0.1', port, path, method: 'POST', headers, agent: false });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    asked.on('response', resolve).on('error', reject);
  });

  return { asked, answered };
}

async function call(body: Uint8Array | string): Promise<{ status: number; text: string }> {
  const { asked, answered } = begin('ListRooms', typeof body === 'string' ? { type: 'application/json' } : {});
  asked.end(body);
  const answer = await answered;
  let text = '';
  for await (const chunk of answer) text += String(chunk);

  return { status: answer.statusCode ?? 0, text };
}

const asks = (...names: string[]): Uint8Array => new ListRoomsRequest({ names }).toBinary();

test('answers with an error when the result cannot be encoded', async () => {
  const { status, text } = await call(asks('endless'));
  expect(failures).toEqual([]);
  expect(status).toBe(500);
  expect(JSON.parse(text)).toEqual({ code: 'internal', msg: 'internal error' });
});

test.each([
  ['ListRooms', 'join', 401],
  ['ForwardParticipant', 'list', 501],
])('answers a call of %s with the token "%s" before its body arrives', async (name, authorization, status) => {
  const { asked, answered } = begin(name, { authorization });
  asked.write('x');
  expect((await answered).statusCode).toBe(status);
});

test('refuses a body of more than 256 KiB before its end', async () => {
  const { asked, answered } = begin();
  asked.write(Buffer.alloc(256 * 1024 + 1));
  expect((await answered).statusCode).toBe(429);
});

test.each([
  ['binary', (names: string[]) => asks(...names)],
  ['JSON', (names: string[]) => JSON.stringify({ names })],
])('refuses a body of more than 10,000 fields in %s', async (_encoding, write) => {
  const names = (count: number): string[] => Array<string>(count).fill('');
  expect((await call(write(names(9_998)))).status).toBe(200);
  expect(await call(write(names(10_001)))).toEqual({
    status: 400,
    text: JSON.stringify({ code: 'invalid_argument', msg: 'the body cannot be read' }),
  });
});

test('serves small bodies while large ones exhaust what is kept of them', async () => {
  const slow = Array.from({ length: 256 }, () => begin());
  for (const { asked } of slow) asked.write(Buffer.alloc(256 * 1024));
  const refused = begin();
  refused.asked.write(Buffer.alloc(256 * 1024));
  const first = await Promise.race([...slow, refused].map(({ answered }) => answered));
  expect(first.statusCode).toBe(429);
  expect((await call(asks('kitchen'))).status).toBe(200);
  for (const { asked, answered } of [...slow, refused]) {
    answered.catch(() => undefined);
    asked.destroy();
  }
});
