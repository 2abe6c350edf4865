import { afterAll, describe, expect, jest, test } from '@jest/globals';
import { decodeServerMessage, encodeServerMessage } from '@bloom/protocol';
import WebSocket from 'ws';
import { CheckedApi } from './support/checked-api.js';
import { PeerConnection } from './support/peer-socket.js';
import { type Node, startProgram } from './support/program.js';
import { receiveWebhooks, type WebhookReceiver } from './support/webhook-receiver.js';

// All nodes start at the same moment, on the cores of one machine.
jest.setTimeout(120_000);

/** Started nodes. The tests mostly wait, so they run concurrently. */
const nodes: Node[] = [];
const receivers: WebhookReceiver[] = [];

async function start(env: Record<string, string> = {}): Promise<Node> {
  const node = await startProgram(env);
  nodes.push(node);

  return node;
}

/** Receives webhooks and answers each after 200 ms, the first only after `taking` has resolved. */
async function receive(taking: Promise<void>): Promise<WebhookReceiver> {
  const receiver = await receiveWebhooks(async () => {
    await taking;
    return { status: 200, afterMs: 200 };
  });
  receivers.push(receiver);

  return receiver;
}

afterAll(async () => {
  await Promise.all([...nodes.map((node) => node.dispose()), ...receivers.map((receiver) => receiver.close())]);
});

const life = ['roomCreated', 'peerAdded', 'peerConnected', 'peerDisconnected', 'peerDeleted', 'roomDeleted'];

describe('SIGTERM', () => {
  test.concurrent('ends rooms as DELETE does, sends pending webhooks even to a slow receiver, and exits with 0', async () => {
    let take = (): void => undefined;
    const receiver = await receive(new Promise((resolve) => (take = resolve)));
    const node = await start();
    const api = new CheckedApi(node.url);
    const told = watch(node.url);
    await told.subscribed;
    const room = await api.room({ webhookUrl: receiver.url });
    const client = await PeerConnection.authenticated(node.url, (await api.peer(room)).token);
    await receiver.until('roomCreated');
    // The other events are still in the webhook's queue.
    expect(receiver.types()).toEqual(['roomCreated']);
    node.child.kill('SIGTERM');
    take();

    expect(await client.closed).toBe('1000 Room stopped');
    expect(await node.exited).toBe(0);
    expect(receiver.types()).toEqual(life);
    expect(await told.closed).toMatch(/^1001/);
    expect(told.types).toEqual(life);
    await expect(fetch(node.url)).rejects.toThrow();
    await expect(fetch(node.metricsUrl)).rejects.toThrow();
    expect(node.output()).toContain('node.closed');
  });

  test.concurrent('does not wait forever for a receiver that never answers', async () => {
    const receiver = await receive(new Promise(() => {}));
    const node = await start();
    await new CheckedApi(node.url).room({ webhookUrl: receiver.url });
    const from = performance.now();
    node.child.kill('SIGTERM');
    expect(await node.exited).toBe(0);
    expect(performance.now() - from).toBeLessThan(12_000);
    expect(receiver.types()[0]).toBe('roomCreated');
  });

  test.concurrent('accepts no rooms with a drain timeout, and ends existing ones when it has passed', async () => {
    const node = await start({ JF_DRAIN_TIMEOUT: '5' });
    const api = new CheckedApi(node.url);
    const room = await api.room();
    const ann = await api.peer(room);
    const from = performance.now();
    node.child.kill('SIGTERM');
    await node.says('node.draining');

    const refused = await api.call('POST', '/room', {});
    expect(refused.status).toBe(503);
    expect(refused.body.errors).toContain('shutting down');
    const client = await PeerConnection.joined(node.url, ann.token, 1);
    expect((await api.call('GET', '/health')).status).toBe(200);
    expect((await api.peer(room)).id).not.toBe(ann.id);
    expect(await client.closed).toBe('1000 Room stopped');
    expect(performance.now() - from).toBeGreaterThan(4_900);
    expect(await node.exited).toBe(0);
  });

  test.concurrent('ends the node with its last room with a drain timeout', async () => {
    const node = await start({ JF_DRAIN_TIMEOUT: '600' });
    const api = new CheckedApi(node.url);
    const room = await api.room();
    node.child.kill('SIGTERM');
    await node.says('node.draining');
    expect((await api.call('DELETE', `/room/${room}`)).status).toBe(204);
    expect(await node.exited).toBe(0);
  });

  test.concurrent('ends a draining node immediately on a second signal, with exit code 1', async () => {
    const node = await start({ JF_DRAIN_TIMEOUT: '600' });
    const api = new CheckedApi(node.url);
    const client = await PeerConnection.authenticated(node.url, (await api.peer(await api.room())).token);
    node.child.kill('SIGTERM');
    await node.says('node.draining');
    // A repeat at once would count as the first signal, sent to every process of a group.
    const from = performance.now();
    node.child.kill('SIGINT');
    expect(await node.exited).toBe(1);
    // Less than the 5 s that pending webhooks may take.
    expect(performance.now() - from).toBeLessThan(4_500);
    expect(await client.closed).toMatch(/^1006/);
  });

  test.concurrent('promptly ends an idle node with idle connections', async () => {
    const node = await start();
    await fetch(`${node.url}/health`);
    const from = performance.now();
    node.child.kill('SIGTERM');
    expect(await node.exited).toBe(0);
    expect(performance.now() - from).toBeLessThan(4_500);
  });
});

interface Watch {
  /** Types of the notifications so far. */
  readonly types: string[];
  readonly subscribed: Promise<void>;
  /** `<code> <reason>` */
  readonly closed: Promise<string>;
}

function watch(url: string): Watch {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/socket/server/websocket`);
  const types: string[] = [];
  const subscribed = new Promise<void>((resolve) => {
    socket.on('message', (data: Buffer) => {
      const { type } = decodeServerMessage(data);
      if (type === 'subscribeResponse') resolve();
      else if (type !== 'authenticated') types.push(type);
    });
  });
  socket.once('open', () => {
    socket.send(encodeServerMessage({ type: 'authRequest', token: 'development' }));
    socket.send(encodeServerMessage({ type: 'subscribeRequest', eventType: 'serverNotification' }));
  });
  const closed = new Promise<string>((resolve) => {
    socket.once('close', (code, reason) => resolve(`${code} ${reason.toString()}`));
  });

  return { types, subscribed, closed };
}
