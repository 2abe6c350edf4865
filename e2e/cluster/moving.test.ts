// Moves rooms between two processes on two hosts, as an operator orders it.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { describeWith } from '../harness/needs.js';
import { PeerConnection } from '../node/support/peer-socket.js';
import { deployments, LabCluster, type LabNode } from './lab-cluster.js';
import { until } from './until.js';
import { receiveWebhooksAt } from './webhooks.js';

/** Why a room stays for the moment. */
const TOO_SLOW = /its events have not arrived everywhere|does not answer/;

describeWith(['network namespaces'], 'a cluster that moves rooms', () => {
  let cluster: LabCluster;
  beforeAll(async () => {
    cluster = await LabCluster.start(deployments['nodes-list'].services);
  }, 120_000);
  afterAll(() => cluster?.close());

  const createOn = (node: LabNode, body: Record<string, unknown> = {}): Promise<string> => cluster.roomOn(node, body);

  test('empties a node whose people come back, and tells the backend nothing but their metadata', async () => {
    const [one, two] = [cluster.node(1), cluster.node(2)];
    const receiver = await receiveWebhooksAt(cluster.ownAddress);
    try {
      const room = await createOn(one, { webhookUrl: receiver.url });
      const { token } = await one.api.addPeer(room);
      const ann = await PeerConnection.joined(one.url, token, { name: 'Ann' });
      const before = (await one.api.request('GET', `/room/${room}`)).body;
      await until('the backend knows her', () => receiver.heard.includes(`peerMetadataUpdated ${room}`));
      const heard = receiver.heard.length;

      const drained = await one.api.request('POST', '/node/drain', { move: true });
      expect(drained.status).toBe(200);
      expect(await ann.closed).toBe('1012 Room moved');
      await until('the node is empty', async () => (await one.rooms()).length === 0);
      expect(await two.rooms()).toContain(room);
      // The draining node brings her to the room's new node.
      const again = await PeerConnection.joined(one.url, token, { name: 'Ann' });
      for (const { api } of [one, two]) expect((await api.request('GET', `/room/${room}`)).body).toEqual(before);
      expect((await two.api.request('POST', '/room', { roomId: room })).status).toBe(400);
      expect(receiver.heard.slice(heard)).toEqual([]);

      again.socket.close();
      await until('the backend knows that she left', () => receiver.heard.includes(`peerDisconnected ${room}`));
      await two.api.deleteRoom(room);
      await until('the backend knows that the room ended', () => receiver.heard.includes(`roomDeleted ${room}`));
      await one.api.request('DELETE', '/node/drain');
      await cluster.deleteAllRooms();
    } finally {
      await receiver.close();
    }
  }, 120_000);

  test('moves 20 empty rooms within a few seconds by bloomctl', async () => {
    const [one, two] = [cluster.node(1), cluster.node(2)];
    await one.api.request('POST', '/node/drain');
    for (let i = 0; i < 20; i += 1) await two.create();
    await one.api.request('DELETE', '/node/drain');
    const from = performance.now();
    await two.bloomctl(two.checkout, 'drain', 'app@app2', '--move', '--wait', '--yes');
    const seconds = (performance.now() - from) / 1_000;
    process.stdout.write(`20 empty rooms moved in ${seconds.toFixed(1)} s, with the start of bloomctl\n`);
    expect(await one.rooms()).toHaveLength(20);
    expect(await two.rooms()).toEqual([]);
    await two.api.request('DELETE', '/node/drain');
    await cluster.deleteAllRooms();
  }, 120_000);

  test('moves one room by an order that any node takes, and says why another stays', async () => {
    const [one, two] = [cluster.node(1), cluster.node(2)];
    /** Moves a new room. An order tries once, and a busy machine may be too slow for it; then another room is moved. */
    const moveNew = <T>(order: (id: string) => Promise<T>): Promise<{ room: string; answer: T }> =>
      until('a room has moved in time', async () => {
        await cluster.deleteAllRooms();
        const room = await createOn(one);
        return { room, answer: await order(room) };
      });

    const { room, answer } = await moveNew(async (id) => {
      const { status, body } = await two.api.request('POST', `/room/${id}/move`, { node: 'app@app2' });
      if (status === 503 || (status === 409 && TOO_SLOW.test(body.errors))) throw new Error(body.errors);
      return { status, body };
    });
    expect(answer).toEqual({
      status: 200,
      body: { data: { room, from: 'app@app1', to: 'app@app2', ms: expect.any(Number) } },
    });
    expect([await one.rooms(), await two.rooms()]).toEqual([[], [room]]);
    expect((await one.api.request('GET', `/cluster/placement?room=${room}`)).body.data).toMatchObject({
      asked: 'app@app1',
      chosen: 'app@app2',
      policy: 'ordered',
    });

    const refused = async (id: string, node: string): Promise<unknown> => {
      const { status, body } = await one.api.request('POST', `/room/${id}/move`, { node });
      return [status, body.errors];
    };
    const stays = `Room ${room} stays on app@app2: it is on app@app2 already`;
    expect(await refused(room, 'app@app2')).toEqual([409, stays]);
    expect(await refused(room, 'app9')).toEqual([
      404,
      expect.stringMatching(/^no member is called "app9"; the members are: app@app2, /),
    ]);
    expect(await refused('no-room', 'app@app2')).toEqual([404, expect.stringContaining('no-room')]);
    const by = await moveNew((id) => one.bloomctl(one.checkout, 'rooms', 'move', id, 'app@app2', '--yes'));
    const document = { kind: 'room-move', room: by.room, from: 'app@app1', to: 'app@app2', reason: null };
    expect(by.answer).toMatchObject(document);
    expect(await two.rooms()).toEqual([by.room]);
    await cluster.deleteAllRooms();
  }, 120_000);

  test('refuses what is no order to move, and drains nothing', async () => {
    const one = cluster.node(1);
    for (const move of ['yes', 1, {}]) {
      const { status, body } = await one.api.request('POST', '/node/drain', { move });
      expect(status).toBe(400);
      expect(body.errors).toMatch(/^Expected move to be true or false/);
    }
    expect((await fetch(`${one.url}/health/ready`)).status).toBe(200);
  });
});
