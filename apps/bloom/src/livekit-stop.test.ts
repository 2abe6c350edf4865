// LiveKit clients of a node that stops.
import { expect, test } from '@jest/globals';
import { DisconnectReason, LeaveRequest_Action } from '@livekit/protocol';
import { WebSocket } from 'ws';
import { Client, joinRequest, KEY, SECRET, tokenFor } from './testing/livekit-client.js';
import { startTestNode } from './testing/test-node.js';

const CLIENTS = 60;

test('a node that stops sends its clients to other nodes one after the other', async () => {
  const node = await startTestNode({ JF_LIVEKIT_KEYS: `${KEY}: ${SECRET}` });
  const clients: Client[] = [];
  for (let i = 0; i < CLIENTS; i++) {
    const token = await tokenFor({ sub: `p-${i}`, video: { room: 'kitchen' } });
    const url = `${node.url.replace('http', 'ws')}/rtc/v1?access_token=${token}&join_request=${joinRequest()}`;
    const client = new Client(new WebSocket(url));
    await client.heard('join');
    clients.push(client);
  }
  const leftMs: number[] = [];
  const left = clients.map(async (client) => {
    const leave = await client.heard('leave');
    leftMs.push(performance.now());
    return leave;
  });
  await node.dispose();
  for (const leave of await Promise.all(left)) {
    expect(leave).toMatchObject({
      reason: DisconnectReason.SERVER_SHUTDOWN,
      action: LeaveRequest_Action.RECONNECT,
    });
  }
  // 10 ms each.
  expect(Math.max(...leftMs) - Math.min(...leftMs)).toBeGreaterThan(200);
});
