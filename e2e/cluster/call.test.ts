// Tests calls in which a client talks to a node that does not own its room: signalling takes a detour, media does not.
import { afterEach, expect, test } from '@jest/globals';
import type { Peer } from '../harness/peer.js';
import { browserSuite } from '../harness/stage.js';
import { deployments, LabCluster, type LabNode } from './lab-cluster.js';
import { until } from './until.js';

const { services } = deployments['nodes-list'];
const host = (node: LabNode): string => node.address;

/** Returns the media address in the server's last offer. */
function relayAddress(peer: Peer): string {
  const offers = peer.events.filter((event) => event.type === 'received' && event.event === 'offerData');
  const { data } = offers.at(-1) as { data: { integratedTurnServers: { serverAddr: string }[] } };
  return data.integratedTurnServers[0]?.serverAddr ?? 'none';
}

let cluster: LabCluster;
let owner: LabNode;
let other: LabNode;
const start = async () => {
  cluster = await LabCluster.start(services);
  [owner, other] = [cluster.node(2), cluster.node(1)];
  return {
    url: owner.url,
    host: host(owner),
    pid: owner.pid,
    log: () => owner.log(),
    stop: () => cluster.close(),
    kill: () => owner.kill(),
  };
};

const needs = ['network namespaces'] as const;
browserSuite('Calls through a node that does not own the room', { node: start, needs }, (stage) => {
  afterEach(async () => {
    for (const node of cluster.nodes) if (!node.runs) node.start();
    await cluster.complete();
  });

  /** Puts Ann at the room's owner and Bob at the other node with a token from there; each sees and hears the other. */
  async function call(): Promise<{ room: string; ann: Peer; bob: Peer; red: string; blue: string }> {
    await cluster.deleteAllRooms();
    let room = await other.create();
    if (room.address !== owner.address) room = await other.create();
    expect(room.address).toBe(owner.address);
    const ann = await stage.seat(await owner.api.addPeer(room.id), 'ann');
    const bob = await stage.seat(await other.api.addPeer(room.id), 'bob');
    await ann.join();
    await bob.join({ host: host(other), reconnect: true });
    const [red, blue] = [await ann.addVideo({ colour: 'red' }), await bob.addVideo({ colour: 'blue' })];
    const tone = await bob.addTone(440);
    await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue'), ann.sounds(tone, 440)]);
    return { room: room.id, ann, bob, red, blue };
  }

  test('lets two clients, one at each node, see and hear each other, with media straight to the owner', async () => {
    const { room, ann, bob, blue } = await call();
    for (const peer of [ann, bob]) expect(relayAddress(peer)).toBe(owner.host.address);
    for (const node of [owner, other]) {
      const { peers } = await node.api.room(room);
      expect(peers.map(({ status }: { status: string }) => status)).toEqual(['connected', 'connected']);
    }

    // Both nodes report the other client's actions and its end.
    await bob.call('updatePeerMetadata', { name: 'Bobby' });
    await ann.next('peerUpdated', ({ peer }) => (peer.metadata as { name: string }).name === 'Bobby');
    await other.api.deletePeer(room, bob.id);
    expect(await bob.next('socketClose')).toMatchObject({ code: 1000, reason: 'Peer removed' });
    await ann.removed(blue);
  });

  test('counts a client whose node is lost as lost, and lets it rejoin at the owner with the same token', async () => {
    const { room, ann, bob, red, blue } = await call();
    await other.kill();
    await ann.removed(blue);
    await until('the owner shows Bob as disconnected', async () => {
      const { peers } = await owner.api.room(room);
      return peers.some(({ id, status }: { id: string; status: string }) => id === bob.id && status === 'disconnected');
    });

    const again = await stage.seat({ id: bob.id, token: bob.token }, 'bob again');
    await again.join();
    const green = await again.addVideo({ colour: 'green' });
    await Promise.all([again.plays(red, 'red'), ann.plays(green, 'green')]);
  });

  test('closes a client whose room is lost with its node with 1011, so that it retries', async () => {
    const { bob } = await call();
    await owner.kill();
    expect(await bob.next('socketClose')).toMatchObject({ code: 1011, reason: 'Internal server error' });
    expect(bob.since('authError')).toEqual([]);
  });
});
