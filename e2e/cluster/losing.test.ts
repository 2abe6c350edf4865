// Tests nodes that freeze, die, or are cut off.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { encodePeerMessage } from '@bloom/protocol';
import { BloomClient } from '@bloom/server-sdk';
import { WebSocket } from 'ws';
import type { Answer } from '../harness/api.js';
import { middle } from '../harness/measurements.js';
import { describeWith, nightly } from '../harness/needs.js';
import { deployments, LabCluster, type LabNode } from './lab-cluster.js';
import { until } from './until.js';

const { services } = deployments['nodes-list'];
// A member that is cut off counts as lost after 4 s of silence instead of a minute.
const attentive = services.map((service) => ({ ...service, env: { ...service.env, JF_DIST_TICK_TIME: '4' } }));

async function timed<T>(task: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const from = performance.now();
  const result = await task();
  return { result, ms: performance.now() - from };
}

/**
 * How long a node waits for a member that does not answer. A request that takes longer has waited. The wait itself is
 * tested where the clock is injected (packages/rooms).
 */
const WAIT_MS = 1_000;
/**
 * A node that did not notice the silence would wait for 4 s. This bound also suffices on a machine busy with other
 * tests.
 */
const WAITED_ONCE_MS = 3 * WAIT_MS;

/** Returns how much longer a request takes than a simultaneous one that needs no other node. */
async function waited<T>(node: LabNode, task: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const [asked, usual] = await Promise.all([timed(task), timed(() => node.api.request('GET', '/health'))]);
  return { result: asked.result, ms: asked.ms - usual.ms };
}

/** Returns how often a node has logged that it met, or lost, the other. */
function meetings(node: LabNode): { met: number; lost: number } {
  const count = (words: RegExp): number => node.log().match(words)?.length ?? 0;
  return { met: count(/\] connected to/g), lost: count(/\] disconnected from/g) };
}

/** Collects the notifications of a subscriber at this node. */
async function listen(node: LabNode): Promise<{ events: string[]; stop: () => Promise<void> }> {
  const events: string[] = [];
  const end = new AbortController();
  let listening: () => void = () => undefined;
  const subscribed = new Promise<void>((resolve) => (listening = resolve));
  const client = new BloomClient({ url: node.url, token: 'development' });
  const reading = (async () => {
    for await (const event of client.notifications({ onSubscribed: listening, signal: end.signal })) {
      events.push(`${event.type} ${event.roomId}`);
    }
  })();
  await subscribed;

  return {
    events,
    stop: () => {
      end.abort();
      return reading;
    },
  };
}

/** Returns this node's metrics about app2, and the number of ids that it knows to be on two nodes. */
async function clusterFigures(node: LabNode): Promise<{ up: number; ups: number; downs: number; conflicts: number }> {
  const text = await (await fetch(`http://${node.host.address}:9568/metrics`)).text();
  const value = (series: string): number => {
    const line = text.split('\n').find((one) => one.startsWith(`${series} `));
    return Number(line?.slice(series.length) ?? 0);
  };
  const of = (name: string): number => value(`${name}{node="app@app2"}`);

  return {
    up: of('bloom_cluster_link_up'),
    ups: of('bloom_cluster_nodeup_total'),
    downs: of('bloom_cluster_nodedown_total'),
    conflicts: value('bloom_room_id_conflicts_total'),
  };
}

/** Sends a request from a program on the same host, which needs no cable. */
async function onHost(node: LabNode, line: string, body?: unknown): Promise<Answer> {
  const [method, path] = line.split(' ');
  const script = `fetch('http://localhost:${node.service.port}${path}', {
    method: '${method}',
    headers: { authorization: 'Bearer development', 'content-type': 'application/json' },
    ...(${body !== undefined} ? { body: ${JSON.stringify(JSON.stringify(body) ?? '')} } : {}),
  }).then(async (answer) => console.log(JSON.stringify({ status: answer.status, body: await answer.json() })))`;
  const program = node.host.start(process.execPath, ['-e', script]);
  let text = '';
  program.stdout?.on('data', (data: Buffer) => (text += data.toString()));
  await once(program, 'close');
  return JSON.parse(text) as Answer;
}

describeWith(['network namespaces'], 'a member that is lost', () => {
  let cluster: LabCluster;
  let one: LabNode;
  let two: LabNode;
  beforeAll(async () => {
    cluster = await LabCluster.start(attentive);
    [one, two] = [cluster.node(1), cluster.node(2)];
  }, 120_000);
  afterAll(() => cluster?.close());

  test('makes one creation wait for a frozen node, which gets no room, and none of the others', async () => {
    await cluster.deleteAllRooms();
    // From here on node 1 is busier, so every room would go to node 2 if it could.
    for (let i = 0; i < 6; i += 1) await one.create();
    for (const room of await two.rooms()) await two.api.deleteRoom(room);

    two.freeze();
    try {
      const first = await timed(() => one.create());
      const next = await waited(one, () => one.create());
      expect(first.result.address).toEqual(one.address);
      expect(next.result.address).toEqual(one.address);
      expect(first.ms).toBeLessThan(WAITED_ONCE_MS);
      expect(next.ms).toBeLessThan(WAIT_MS);
    } finally {
      two.thaw();
    }
    // It answers again, so it is a candidate again, and earlier requests to it have been withdrawn.
    await cluster.complete();
    await until('node 2 gets rooms again', async () => (await one.create()).address === two.address);
    expect(await two.rooms()).toHaveLength(1);
  }, 120_000);

  test("makes the first request for a frozen node's rooms wait, and answers all with 503", async () => {
    await cluster.deleteAllRooms();
    let room = await one.create();
    while (room.address !== two.address) room = await one.create();
    const { token } = await one.api.addPeer(room.id);

    two.freeze();
    try {
      const { result, ms } = await timed(() => one.api.request('GET', `/room/${room.id}`));
      expect(result.status).toBe(503);
      expect(JSON.stringify(result.body)).toContain('app@app2');
      expect(ms).toBeLessThan(WAITED_ONCE_MS);
      for (const [method, path] of [
        ['GET', `/room/${room.id}`],
        ['DELETE', `/room/${room.id}`],
        ['POST', `/room/${room.id}/peer`],
        ['GET', '/room/nobody-knows-it'],
      ] as const) {
        const body = method === 'POST' ? { type: 'webrtc', options: {} } : undefined;
        const later = await waited(one, () => one.api.request(method, path, body));
        expect(later.result.status).toBe(503);
        expect(later.ms).toBeLessThan(WAIT_MS);
      }
      const socket = new WebSocket(`${one.url.replace('http', 'ws')}/socket/peer/websocket`);
      const closed = once(socket, 'close');
      await once(socket, 'open');
      const refused = await waited(one, async () => {
        socket.send(encodePeerMessage({ type: 'authRequest', token }));
        const [code, reason] = (await closed) as [number, Buffer];
        return `${code} ${reason.toString()}`;
      });
      expect(refused.result).toBe('1013 try again');
      expect(refused.ms).toBeLessThan(WAIT_MS);
    } finally {
      two.thaw();
    }
    await cluster.complete();
    await until(
      'node 2 answers for its room again',
      async () => (await one.api.request('GET', `/room/${room.id}`)).status === 200,
    );
  }, 120_000);

  test('answers a steady flow of creations while a node is frozen, none of them late', async () => {
    await cluster.deleteAllRooms();
    for (let i = 0; i < 6; i += 1) await one.create();
    for (const room of await two.rooms()) await two.api.deleteRoom(room);
    const pending: Promise<{ result: { address: string }; ms: number }>[] = [];
    const createFor = async (seconds: number): Promise<void> => {
      for (const until = performance.now() + seconds * 1_000; performance.now() < until; await delay(50)) {
        pending.push(waited(one, () => one.create()));
      }
    };

    two.freeze();
    try {
      await createFor(2.5);
      const answers = await Promise.all(pending.splice(0));
      expect(answers.filter(({ result }) => result.address !== one.address)).toEqual([]);
      // One request waits for the frozen node, and later requests wait for that one.
      expect(Math.max(...answers.map(({ ms }) => ms))).toBeLessThan(WAITED_ONCE_MS);
      const late = answers.slice(Math.ceil(answers.length * 0.7)).map(({ ms }) => ms);
      expect(Math.max(...late)).toBeLessThan(WAIT_MS);
      expect(middle(late)).toBeLessThan(200);
    } finally {
      two.thaw();
    }
    await cluster.complete();
    await until('node 2 gets rooms again', async () => (await one.create()).address === two.address);
    const [local, everywhere] = [await Promise.all([one, two].map((node) => node.rooms())), await one.rooms('cluster')];
    expect(local.flat().toSorted()).toEqual(everywhere);
  }, 120_000);

  test('answers 503 with the name of a node that is cut off for seconds, and both sides recover', async () => {
    await cluster.deleteAllRooms();
    const rooms = [await one.create(), await one.create()];
    const far = rooms.find(({ address }) => address === two.address)?.id ?? 'none';

    const heard = await listen(one);
    const figures = await clusterFigures(one);
    const before = new Map([one, two].map((node) => [node, meetings(node)]));
    two.host.linkDown();
    await one.joined(1);
    const answer = await one.api.request('GET', `/room/${far}`);
    expect(answer).toEqual({
      status: 503,
      body: { errors: `Room ${far} is on app@app2, which is currently unreachable` },
    });
    expect(await one.rooms('cluster')).not.toContain(far);
    const listed = await one.api.request('GET', '/room?scope=cluster');
    expect(listed.body.unreachable).toEqual(['app@app2']);
    await one.says(/cluster\.node_lost node=app@app2/);
    expect(await clusterFigures(one)).toEqual({ ...figures, up: 0, downs: figures.downs + 1 });
    // Each side may use the same id.
    expect((await one.create({ roomId: 'twice' })).address).toBe(one.address);
    await until('node 2 is alone too', async () => {
      return (await onHost(two, 'GET /health')).body.data.distribution.nodesInCluster === 1;
    });
    expect((await onHost(two, 'POST /room', { roomId: 'twice' })).status).toBe(201);

    // Long enough for the system to forget every connection; the nodes notice within seconds.
    if (nightly) await delay(60_000);
    two.host.linkUp();
    await cluster.complete();
    for (const node of [one, two]) {
      const { met = 0, lost = 0 } = before.get(node) ?? {};
      expect(meetings(node)).toEqual({ met: met + 1, lost: lost + 1 });
    }
    expect(await one.api.room(far)).toMatchObject({ id: far });
    expect((await one.api.request('GET', '/room?scope=cluster')).body.unreachable).toEqual([]);
    await one.says(/room_id=twice \[warning\] cluster\.room_on_two_nodes/);
    expect(await clusterFigures(one)).toEqual({
      up: 1,
      ups: figures.ups + 1,
      downs: figures.downs + 1,
      conflicts: figures.conflicts + 1,
    });
    // Neither room is deleted silently.
    for (const node of [one, two]) expect(await node.rooms()).toContain('twice');

    // Events from the other side are not delivered late, and new ones are delivered once.
    await two.api.deleteRoom(far);
    await until('the end of the room is heard', () => heard.events.includes(`roomDeleted ${far}`));
    await heard.stop();
    expect(heard.events).toEqual([`roomCreated twice`, `roomDeleted ${far}`]);
  }, 240_000);

  test('answers at once on the survivor after kill -9, and lets the restarted node join again', async () => {
    await cluster.deleteAllRooms();
    const rooms = [await one.create(), await one.create()];
    const far = rooms.find(({ address }) => address === two.address)?.id ?? 'none';

    await two.kill();
    const next = await waited(one, () => one.create());
    expect(next.result.address).toBe(one.address);
    expect(next.ms).toBeLessThan(WAIT_MS);
    expect((await one.distribution())?.nodesInCluster).toBe(1);
    expect((await one.api.request('GET', `/room/${far}`)).status).toBe(503);

    two.start();
    await cluster.complete();
    expect(await two.rooms()).toEqual([]);
    // The node has announced what it owns, so its lost rooms have ended.
    await until(
      'the lost room is forgotten',
      async () => (await one.api.request('GET', `/room/${far}`)).status === 404,
    );
    expect((await one.create()).address).toBe(two.address);
  }, 120_000);
});
