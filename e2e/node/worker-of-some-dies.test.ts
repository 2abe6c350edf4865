// A room spans two media workers, and one of them dies: its peers are disconnected and reconnect; the room continues.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { Publisher } from '@bloom/participant';
import { WeriftClient } from '../harness/werift-client.js';
import { CheckedApi } from './support/checked-api.js';
import { type Node, startProgram } from './support/program.js';
import { receiveWebhooks, type WebhookReceiver } from './support/webhook-receiver.js';

jest.setTimeout(120_000);

const preloads = [
  new URL('./support/worker-faults.mjs', import.meta.url),
  new URL('../harness/across-workers.mjs', import.meta.url),
];

let node: Node;
let api: CheckedApi;
let webhooks: WebhookReceiver;
const members: WeriftClient[] = [];

beforeEach(async () => {
  webhooks = await receiveWebhooks();
  const NODE_OPTIONS = preloads.map(({ href }) => `--import=${href}`).join(' ');
  node = await startProgram({ JF_MEDIA_WORKERS: '2', NODE_OPTIONS });
  api = new CheckedApi(node.url);
});

afterEach(async () => {
  await Promise.all(members.splice(0).map((member) => member.close()));
  await node.dispose();
  await webhooks.close();
});

async function join(token: string, publisher?: Publisher): Promise<WeriftClient> {
  const member = await WeriftClient.join(node.url, token, publisher);
  members.push(member);
  return member;
}

async function flows({ received }: WeriftClient): Promise<void> {
  const before = received.length;
  while (received.length < before + 20) await new Promise((resolve) => setTimeout(resolve, 20));
}

test('the peers on a worker that dies get 1011 and return with the same token, while the others see each other', async () => {
  const roomId = await api.room({ webhookUrl: webhooks.url });
  const [ann, bob, eve] = [await api.peer(roomId), await api.peer(roomId), await api.peer(roomId)];
  const source = new Publisher('video', 400);
  const publisher = await join(ann.token, source);
  const lost = await join(bob.token);
  const kept = await join(eve.token);
  expect(lost.mediaPort).not.toBe(publisher.mediaPort);
  expect(kept.mediaPort).toBe(publisher.mediaPort);
  source.start(200);
  await Promise.all([flows(lost), flows(kept)]);

  // The first worker dies. The room began there, and its first transport went to the second one.
  process.kill(node.child.pid as number, 'SIGUSR2');
  expect(await lost.closed).toBe(1011);
  await webhooks.until('peerDisconnected');
  await flows(kept);
  const { body } = await api.call('GET', `/room/${roomId}`);
  const status = new Map(body.data.peers.map((peer: { id: string; status: string }) => [peer.id, peer.status]));
  expect(status.get(bob.id)).toBe('disconnected');
  expect(status.get(ann.id)).toBe('connected');

  const again = await join(bob.token);
  expect(again.mediaPort).not.toBe(lost.mediaPort);
  await flows(again);
  expect(webhooks.types()).not.toContain('roomCrashed');
  expect(webhooks.types()).not.toContain('peerCrashed');
});
