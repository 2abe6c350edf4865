// Tests faults of a node, and requests through any node, with three nodes, one of them of the last release.
import { afterAll, beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import { BloomClient } from '@bloom/server-sdk';
import type { LabCluster, LabNode } from '../cluster/lab-cluster.js';
import { until } from '../cluster/until.js';
import { apiToken } from '../harness/bloom-node.js';
import { describeWith, testWith } from '../harness/needs.js';
import { makeSources } from '../hls/sources.js';
import { fetchFrom } from '../hls/support.js';
import { checkoutOf, roomOn, startMixed } from './mixed-cluster.js';

const RELEASES = ['this', 'last', 'this'] as const;
/** Numbers of the node that is asked and of the node in question, one of them of the last release. */
const DIRECTIONS = [
  { asked: 1, about: 2, title: 'a node of the last release, as a newer one sees it' },
  { asked: 2, about: 1, title: 'a node of this checkout, as an older one sees it' },
] as const;

jest.setTimeout(60_000);

/** Collects a node's server notifications until a room with that id is created. Returns types by room. */
async function hear(node: LabNode, last: string): Promise<() => Promise<Map<string, string[]>>> {
  const heard = new Map<string, string[]>();
  let listening: () => void = () => undefined;
  const subscribed = new Promise<void>((resolve) => (listening = resolve));
  const events = new BloomClient({ url: node.url, token: apiToken }).notifications({ onSubscribed: listening });
  const reading = (async () => {
    for await (const { type, roomId } of events) {
      if (roomId === last) break;
      heard.set(roomId, [...(heard.get(roomId) ?? []), type]);
    }
    return heard;
  })();
  await Promise.race([subscribed, reading]);
  return () => reading;
}

describeWith(['network namespaces', 'the last release'], 'three nodes, the second of the last release', () => {
  let cluster: LabCluster;
  beforeAll(async () => {
    cluster = await startMixed(RELEASES);
  }, 120_000);
  afterAll(() => cluster?.close());
  beforeEach(() => cluster.deleteAllRooms());

  test('meet each other although the first and the third know only the second', async () => {
    for (const node of cluster.nodes) expect((await node.distribution())?.nodesInCluster).toBe(3);
    const rooms = await Promise.all(cluster.nodes.map((_node, i) => roomOn(cluster, i + 1)));
    for (const node of cluster.nodes) expect(await node.rooms('cluster')).toEqual(rooms.toSorted());
  });

  test('nodes of both releases accept an id once when all get it at the same moment', async () => {
    for (let round = 0; round < 20; round += 1) {
      const answers = await Promise.all(
        cluster.nodes.map((node) => node.api.request('POST', '/room', { roomId: `race-${round}` })),
      );
      expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 400, 400]);
    }
  });

  test('nodes of both releases send subscribers at each of them every event once', async () => {
    for (const owner of [1, 2]) {
      const last = `last-of-${owner}`;
      const ears = await Promise.all(cluster.nodes.map((node) => hear(node, last)));
      const room = await roomOn(cluster, owner);
      const { api } = cluster.node(3);
      const peer = await api.addPeer(room);
      await api.deletePeer(room, peer.id);
      await api.deleteRoom(room);
      // It comes from the same node, so any duplicate from that node has arrived before it.
      expect((await cluster.node(owner).create({ roomId: last })).address).toBe(cluster.node(owner).address);
      await cluster.deleteAllRooms();
      for (const ear of ears) {
        expect((await ear()).get(room)).toEqual(['roomCreated', 'peerAdded', 'peerDeleted', 'roomDeleted']);
      }
    }
  });

  test('shows the nodes completely in the tools of both releases, through each of them', async () => {
    const room = await roomOn(cluster, 2);
    for (const release of ['last', 'this'] as const) {
      for (const node of [cluster.node(1), cluster.node(2)]) {
        const ask = (...args: string[]) => node.bloomctl(checkoutOf(release), ...args);
        const { nodes } = await ask('nodes');
        expect(nodes.map(({ state }: { state: string }) => state)).toEqual(['up', 'up', 'up']);
        const { rooms } = await ask('rooms');
        expect(rooms.map(({ id }: { id: string }) => id)).toEqual([room]);
        expect(await ask('room', room)).toMatchObject({ id: room });
      }
    }
  });

  test('nodes of both releases show what each of them speaks: a release that announces nothing speaks 1', async () => {
    const { views } = await cluster.node(1).bloomctl(checkoutOf('this'), 'cluster');
    const { links } = views.find(({ node }: { node: string }) => node === 'app@app1');
    const announced = new Map(links.map((link: { node: string; announced: unknown }) => [link.node, link.announced]));
    expect(announced.get('app@app2')).toEqual({ release: null, protocols: { min: 1, max: 1 } });
    expect(announced.get('app@app3')).toMatchObject({ release: expect.stringMatching(/^\d/) });
  });

  test.each(DIRECTIONS)(
    'names $title in 503 and in lists while it is frozen, and finds it again afterwards',
    async ({ asked, about }) => {
      const [node, frozen] = [cluster.node(asked), cluster.node(about)];
      const name = `app@${frozen.name}`;
      const room = await roomOn(cluster, about);
      frozen.freeze();
      const [answer, created] = [await node.api.request('GET', `/room/${room}`), await node.create()];
      const { body } = await node.api.request('GET', '/room?scope=cluster');
      frozen.thaw();
      expect(answer.status).toBe(503);
      expect(answer.body.errors).toContain(name);
      expect(created.address).not.toBe(frozen.address);
      expect(body.unreachable).toEqual([name]);
      await until('it answers again', async () => (await node.api.request('GET', `/room/${room}`)).status === 200);
      expect(await node.rooms('cluster')).toEqual([created.id, room].toSorted());
    },
  );

  test.each(DIRECTIONS)('lets $title leave cleanly and join again by itself', async ({ asked, about }) => {
    const [node, restarted] = [cluster.node(asked), cluster.node(about)];
    await restarted.stop();
    await node.joined(2);
    restarted.start();
    await cluster.complete();
    const room = await roomOn(cluster, about);
    expect(await node.api.room(room)).toMatchObject({ id: room });
  });

  for (const { asked, about, title } of DIRECTIONS) {
    testWith(['node-av', 'ffmpeg'], `serve a stream and its recording: ${title}`, async () => {
      const [node, owner] = [cluster.node(asked), cluster.node(about)];
      await makeSources(owner.resources);
      const room = await roomOn(cluster, about, { videoCodec: 'h264' });
      const add = async (type: string, options: unknown): Promise<number> =>
        (await node.api.request('POST', `/room/${room}/component`, { type, options })).status;
      expect(await add('hls', { persistent: true })).toBe(201);
      expect(await add('file', { filePath: 'red.h264', framerate: 15 })).toBe(201);
      await until('the stream can be played', async () =>
        (await node.api.room(room)).components.some(
          (component: { properties: { playable?: boolean } }) => component.properties.playable === true,
        ),
      );
      const master = await fetchFrom(node.url, `/hls/${room}/index.m3u8`);
      expect(master).toMatchObject({ status: 200, type: 'application/vnd.apple.mpegurl' });

      await node.api.deleteRoom(room);
      const list = async (): Promise<string[]> => (await node.api.request('GET', '/recording?scope=cluster')).body.data;
      await until('the recording is listed', async () => (await list()).includes(room));
      const playlist = await fetchFrom(node.url, `/recording/${room}/main.m3u8`);
      expect(playlist).toMatchObject({ status: 200, type: 'application/vnd.apple.mpegurl' });
      const segment = /^muxed_segment_\d+_\S+\.m4s$/m.exec(playlist.text)?.[0] ?? 'none';
      const [here, there] = await Promise.all(
        [node, owner].map(({ url }) => fetchFrom(url, `/recording/${room}/${segment}`)),
      );
      expect(here?.status).toBe(200);
      expect(here?.text).toBe(there?.text);
      expect((await node.api.request('DELETE', `/recording/${room}`)).status).toBe(204);
      expect(await list()).toEqual([]);
    });
  }
});
