// Scenarios for every deployment: rooms are spread, and any node answers for any room.
import { beforeEach, expect, test } from '@jest/globals';
import { BloomClient } from '@bloom/server-sdk';
import { PeerConnection } from '../node/support/peer-socket.js';
import type { Cluster, ClusterNode } from './cluster-node.js';
import { until } from './until.js';
import { receiveWebhooksAt } from './webhooks.js';

const oddHeaders = { accept: 'Application/json; Charset=utf-8', authorization: 'Bearer development' };

/** Creates a room through this node with an empty body, as backends without options do. */
async function bareCreate(node: ClusterNode): Promise<{ id: string; address: string }> {
  const answer = await fetch(`${node.url}/room`, { method: 'POST', headers: oddHeaders });
  expect(answer.status).toBe(201);
  const { data } = (await answer.json()) as { data: { room: { id: string }; jellyfish_address: string } };
  return { id: data.room.id, address: data.jellyfish_address };
}

const nested = (levels: number): unknown => (levels === 0 ? [] : [nested(levels - 1)]);

/** Creates two rooms through node 1, one for each node. Returns the rooms on node 1 and node 2. */
async function oneRoomEach(cluster: Cluster<ClusterNode>): Promise<{ onFirst: string; onSecond: string }> {
  const rooms = [await cluster.node(1).create(), await cluster.node(1).create()];
  const on = (node: ClusterNode): string => rooms.find(({ address }) => address === node.address)?.id ?? 'none';
  return { onFirst: on(cluster.node(1)), onSecond: on(cluster.node(2)) };
}

/** `mixed`: the nodes are of different releases, which may word a refusal differently. */
export function referenceScenarios(running: () => Cluster<ClusterNode>, { mixed = false } = {}): void {
  let cluster: Cluster<ClusterNode>;
  let one: ClusterNode;
  let two: ClusterNode;
  beforeEach(async () => {
    cluster = running();
    [one, two] = [cluster.node(1), cluster.node(2)];
    await cluster.deleteAllRooms();
  });
  const counts = async (scope: 'local' | 'cluster' = 'local'): Promise<number[]> =>
    Promise.all([one, two].map(async (node) => (await node.rooms(scope)).length));

  test('reports a distribution with two members on both nodes, which log whom they met', async () => {
    for (const node of [one, two]) {
      expect(await node.distribution()).toEqual({ enabled: true, nodeStatus: 'UP', nodesInCluster: 2 });
      expect(node.log()).toMatch(/connected to :"(app|bloom)@/);
      expect(node.log()).not.toContain('bloom_cookie');
    }
  });

  test('places rooms created through one node on the emptier one, and the next where a room was deleted', async () => {
    const first = await bareCreate(one);
    expect(await cluster.at(first.address).rooms()).toEqual([first.id]);

    const second = await bareCreate(one);
    expect(second.address).not.toBe(first.address);
    expect(await counts()).toEqual([1, 1]);

    const answer = await fetch(`http://${first.address}/room/${first.id}`, { method: 'DELETE', headers: oddHeaders });
    expect(answer.status).toBe(204);
    expect(await cluster.at(first.address).rooms()).toEqual([]);
    expect(await cluster.at(second.address).rooms()).toEqual([second.id]);

    const third = await bareCreate(one);
    expect(third.address).toBe(first.address);
    expect(await counts()).toEqual([1, 1]);
  });

  test('shows a room in the local list of its owner only, and in the cluster list of both', async () => {
    const { id, address } = await one.create();
    const owner = cluster.at(address);
    expect(await owner.rooms()).toEqual([id]);
    expect(await (owner === one ? two : one).rooms()).toEqual([]);
    expect(await one.rooms('cluster')).toEqual([id]);
    expect(await two.rooms('cluster')).toEqual([id]);
  });

  test('gives each node one of two rooms, and the next to the one whose room was deleted through the other', async () => {
    const { onFirst, onSecond } = await oneRoomEach(cluster);
    expect(await one.rooms()).toEqual([onFirst]);
    expect(await two.rooms()).toEqual([onSecond]);
    expect(await counts('cluster')).toEqual([2, 2]);

    await one.api.deleteRoom(onSecond);
    expect(await counts()).toEqual([1, 0]);
    expect((await one.create()).address).toBe(two.address);
    expect(await counts()).toEqual([1, 1]);
  });

  test('shows on both nodes a peer that was added through the one that does not own the room, and its end', async () => {
    const { onSecond } = await oneRoomEach(cluster);
    const answer = await one.api.request('POST', `/room/${onSecond}/peer`, { type: 'webrtc', options: {} });
    expect(answer.status).toBe(201);
    // Clients get the owner's address, so their media takes no detour.
    expect(answer.body.data.peer_websocket_url).toBe(`${two.address}/socket/peer/websocket`);
    for (const node of [one, two]) {
      expect((await node.api.room(onSecond)).peers.map((peer: { id: string }) => peer.id)).toEqual([
        answer.body.data.peer.id,
      ]);
    }
    await one.api.deletePeer(onSecond, answer.body.data.peer.id);
    expect((await two.api.room(onSecond)).peers).toEqual([]);
    for (const room of await one.rooms('cluster')) await one.api.deleteRoom(room);
    expect([await counts(), await counts('cluster')]).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });

  test('refuses the same for a room on another node as for a local one, and knows an unknown room nowhere', async () => {
    const { onSecond } = await oneRoomEach(cluster);
    for (const [method, path, body] of [
      ['DELETE', `/room/${onSecond}/peer/nobody`, undefined],
      ['POST', `/room/${onSecond}/peer`, { type: 'no such type' }],
      ['POST', `/room/${onSecond}/peer`, { type: 'webrtc', options: nested(1_000) }],
      ['POST', `/room/${onSecond}/component`, { type: 'hls', options: { lowLatency: nested(1_000) } }],
      ['POST', `/room/${onSecond}/component`, { type: 'file', options: { unknown: nested(1_000) } }],
      ['POST', `/room/${onSecond}/component`, { type: 'file', options: { filePath: 'x'.repeat(5_000_000) } }],
      ['POST', `/room/${onSecond}/component/nobody/subscribe`, { origins: ['a'] }],
      ['POST', `/sip/${onSecond}/nobody/call`, { phoneNumber: '1' }],
      ['GET', '/room/nowhere', undefined],
      ['DELETE', '/room/nowhere', undefined],
    ] as const) {
      const [there, here] = [await two.api.request(method, path, body), await one.api.request(method, path, body)];
      expect(here.status).toBe(there.status);
      if (!mixed) expect(here.body).toEqual(there.body);
      expect(here.status).toBeGreaterThanOrEqual(400);
    }
    for (const node of [one, two]) expect((await node.api.request('GET', '/room/nowhere')).status).toBe(404);
  });

  test("sends a room's events once to a subscriber on the other node and once to its webhook", async () => {
    const receiver = await receiveWebhooksAt(cluster.ownAddress);
    const heard: string[] = [];
    let listening: () => void = () => undefined;
    const subscribed = new Promise<void>((resolve) => (listening = resolve));
    const events = new BloomClient({ url: one.url, token: 'development' }).notifications({ onSubscribed: listening });
    const reading = (async () => {
      for await (const event of events) {
        heard.push(`${event.type} ${event.roomId}`);
        if (event.type === 'roomDeleted') break;
      }
    })();
    await subscribed;

    const rooms = [
      await one.create({ webhookUrl: `${receiver.url}/hook` }),
      await one.create({ webhookUrl: `${receiver.url}/hook` }),
    ];
    expect(new Set(rooms.map(({ address }) => address)).size).toBe(2);
    const remote = rooms.find(({ address }) => address === two.address)?.id ?? 'none';
    // The event that ends the loop also comes from the other node, so any duplicate has arrived before it.
    await two.api.deleteRoom(remote);
    await reading;
    await until('the webhooks have come', () => receiver.heard.length >= 3);
    const of = (list: readonly string[], id: string): string[] => list.filter((line) => line.endsWith(id));
    expect(of(heard, remote)).toEqual([`roomCreated ${remote}`, `roomDeleted ${remote}`]);
    expect(of(receiver.heard, remote)).toEqual([`roomCreated ${remote}`, `roomDeleted ${remote}`]);
    await receiver.close();
  });

  test('accepts the token of a peer in a remote room here, and signals through this node', async () => {
    const { onSecond } = await oneRoomEach(cluster);
    const peer = await one.api.addPeer(onSecond);
    const connection = await PeerConnection.joined(one.url, peer.token, { name: 'Ann' });
    const [seen] = (await two.api.room(onSecond)).peers;
    expect(seen).toMatchObject({ id: peer.id, status: 'connected', metadata: { name: 'Ann' } });

    connection.send({ type: 'updateEndpointMetadata', data: { metadata: { name: 'Bob' } } });
    await until('the new name is known at the owner', async () => {
      return (await two.api.room(onSecond)).peers[0].metadata.name === 'Bob';
    });
    await one.api.deletePeer(onSecond, peer.id);
    expect(await connection.closed).toBe('1000 Peer removed');
  });

  test('treats an id taken on one node as taken on the other, even when both are asked at the same moment', async () => {
    await one.create({ roomId: 'standup' });
    const again = await two.api.request('POST', '/room', { roomId: 'standup' });
    expect(again).toEqual({
      status: 400,
      body: { errors: 'Cannot add room with id "standup" - room already exists' },
    });
    for (let round = 0; round < 10; round += 1) {
      const both = await Promise.all(
        [one, two].map((node) => node.api.request('POST', '/room', { roomId: `race-${round}` })),
      );
      expect(both.map(({ status }) => status).toSorted()).toEqual([201, 400]);
    }
    expect(await one.rooms('cluster')).toHaveLength(11);

    await two.api.deleteRoom('standup');
    expect((await one.api.request('POST', '/room', { roomId: 'standup' })).status).toBe(201);
  });
}
