// People who wait until their room goes on at another node.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { encodePeerMessage } from '@bloom/protocol';
import type { AttachedPeer } from '@bloom/rooms';
import { WebSocket } from 'ws';
import { openPeerSocketServer, type PeerSocketServer } from './peer-socket-server.js';

/** More than a stranger may send. */
const MUCH = Buffer.alloc(20_000);

let http: Server;
let server: PeerSocketServer;
let goOn: () => void;
/** Resolves when that many tokens have arrived. */
let arrived: (count: number) => Promise<void>;

beforeEach(async () => {
  const room = new Promise<AttachedPeer>((resolve) => {
    goOn = () => resolve({ receive: () => undefined, detach: () => undefined });
  });
  const tokens: string[] = [];
  let news: () => void = () => undefined;
  arrived = async (count) => {
    while (tokens.length < count) await new Promise<void>((resolve) => (news = resolve));
  };
  const rooms = {
    readToken: (token: string) => ({ roomId: 'kitchen', peerId: token }),
    attachPeer: (token: string) => {
      tokens.push(token);
      news();
      return room;
    },
  };
  server = openPeerSocketServer({ rooms, log: silentLog });
  http = createServer();
  http.on('upgrade', (request, socket, head) => {
    server.handleUpgrade({ request, socket, head, address: '127.0.0.1' });
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
});
afterEach(async () => {
  server.close();
  http.close();
  await once(http, 'close');
});

async function enter(token: string): Promise<WebSocket> {
  const client = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}/`);
  client.on('error', () => undefined);
  await once(client, 'open');
  client.send(encodePeerMessage({ type: 'authRequest', token }));

  return client;
}

test('each of them is known by the token, and a second websocket with it is a stranger', async () => {
  const ann = await enter('ann');
  await arrived(1);
  const bob = await enter('bob');
  await arrived(2);
  const again = await enter('ann');
  await arrived(3);
  // Its connection may be reset.
  const code = new Promise<number>((resolve) => again.on('close', resolve));
  for (const client of [ann, bob, again]) client.send(MUCH);
  expect(await code).toBe(1006);
  const answers = [once(ann, 'message'), once(bob, 'message')];
  goOn();
  await Promise.all(answers);
});
