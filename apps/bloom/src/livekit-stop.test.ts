// LiveKit clients of a node that stops, in a cluster.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { DisconnectReason, LeaveRequest_Action } from '@livekit/protocol';
import { WebSocket } from 'ws';
import { Client, joinRequest, KEY, SECRET, tokenFor } from './testing/livekit-client.js';
import { startPair, type TestPair } from './testing/test-pair.js';

let pair: TestPair;
const clients: Client[] = [];

beforeEach(async () => {
  pair = await startPair({ JF_LIVEKIT_KEYS: `${KEY}: ${SECRET}` });
}, 120_000);
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.terminate();
  await pair.dispose();
});

const query = async (identity: string): Promise<string> =>
  `access_token=${await tokenFor({ sub: identity, video: { room: 'kitchen' } })}&join_request=${joinRequest()}`;

async function join(url: string, identity: string): Promise<Client> {
  const client = new Client(new WebSocket(`${url.replace('http', 'ws')}/rtc/v1?${await query(identity)}`));
  clients.push(client);

  return client;
}

test('all clients hear that the node stops before its rooms end, which take nobody back meanwhile', async () => {
  const { closes, stays } = pair;
  for (const [identity, { url }] of Object.entries({ ann: closes, bob: closes, cid: stays })) {
    const client = await join(url, identity);
    await client.heard('join');
  }
  const told = clients.map((client) => client.heard('leave'));
  expect(closes.rooms.view('kitchen')?.peers).toHaveLength(3);

  const end = closes.rooms.deleteAll.bind(closes.rooms);
  let refusals: string[] = [];
  closes.rooms.deleteAll = async () => {
    for (const leave of await Promise.all(told)) {
      expect(leave).toMatchObject({
        reason: DisconnectReason.SERVER_SHUTDOWN,
        action: LeaveRequest_Action.RECONNECT,
      });
    }
    const answer = await fetch(`${closes.url}/rtc/v1/validate?${await query('dan')}`);
    refusals = [
      `${answer.status} ${await answer.text()}`,
      await (await join(closes.url, 'ann')).ended,
      await (await join(stays.url, 'ann')).ended,
    ];
    await end();
  };
  await closes.close();
  expect(refusals).toEqual([
    '503 the node shuts down',
    '503 the node shuts down',
    '503 Room kitchen ends, because its node is shutting down',
  ]);

  stays.rooms.undrain('starting');
  await (await join(stays.url, 'ann')).heard('join');
  expect(stays.rooms.view('kitchen')?.peers).toHaveLength(1);
}, 120_000);
