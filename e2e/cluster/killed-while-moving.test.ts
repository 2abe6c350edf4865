// Kills a node of three at each point of a move, as an operator orders it with bloomctl.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { type Label, settings, Trio } from '../bloomctl/trio.js';
import { Api } from '../harness/api.js';
import { type BloomNode, startNode } from '../harness/bloom-node.js';
import { nightly } from '../harness/needs.js';
import { until } from './until.js';
import { receiveWebhooksAt, type WebhookReceiver } from './webhooks.js';

/** `c` only looks on. */
const [GIVER, TAKER] = ['a', 'b'] as const;
/** How long the room is looked at after the death. */
const LOOK_MS = 1_500;

/** The point of the move, which of the two dies there, and who has the room then. */
const DEATHS = [
  ['reserve', GIVER, undefined],
  ['reserved', GIVER, undefined],
  ['offer', GIVER, undefined],
  ['give', GIVER, undefined],
  ['taken', GIVER, TAKER],
  ['offered', TAKER, GIVER],
  ['held', TAKER, GIVER],
  ['take', TAKER, undefined],
  ['opened', TAKER, undefined],
  ['announced', TAKER, undefined],
] as const;
/** One of each outcome; the tests of packages/rooms have a fault at each step. */
const BY_DAY: readonly string[] = ['give', 'taken', 'held', 'take'];

let trio: Trio;
let receiver: WebhookReceiver;
const nodes = new Map<Label, BloomNode>();
const envs = new Map<Label, Record<string, string>>();
const api = (label: Label): Api => new Api(nodes.get(label)?.url ?? '');

beforeAll(async () => {
  for (const label of [GIVER, TAKER, 'c'] as const)
    envs.set(label, { JF_PORT: String(await freeTcpPort()), JF_SIP_USED: 'false' });
  trio = await Trio.start(Object.fromEntries(envs));
  for (const label of [GIVER, TAKER, 'c'] as const) nodes.set(label, trio.nodes[label]);
  receiver = await receiveWebhooksAt('127.0.0.1');
}, 120_000);
afterAll(async () => {
  await Promise.all([...nodes.values()].map((node) => node.stop()));
  await trio?.stop();
  await receiver?.close();
});

/** Returns whether the node has the room; undefined if it does not answer. */
async function has(label: Label, room: string): Promise<boolean | undefined> {
  const answer = await api(label)
    .request('GET', '/room')
    .catch(() => undefined);
  return answer?.body.data.some(({ id }: { id: string }) => id === room);
}

async function createOnGiver(): Promise<string> {
  for (const label of [TAKER, 'c'] as const) await api(label).request('POST', '/node/drain');
  try {
    return await until('the giver has a room', () => api(GIVER).createRoom({ webhookUrl: receiver.url }));
  } finally {
    for (const label of [TAKER, 'c'] as const) await api(label).request('DELETE', '/node/drain');
  }
}

function isAlive(label: Label): boolean {
  try {
    return process.kill(nodes.get(label)?.pid ?? 0, 0);
  } catch {
    return false;
  }
}

/** Looks at the room until `isOver`. Returns what `c` answers, and how many have it at once at most. */
async function watch(room: string, isOver: () => boolean): Promise<{ answers: Set<number>; owners: number }> {
  const answers = new Set<number>();
  let owners = 0;
  while (!isOver()) {
    // The taker first: the room may move between the two questions, but never back.
    const taker = await has(TAKER, room);
    const giver = await has(GIVER, room);
    owners = Math.max(owners, Number(taker === true) + Number(giver === true));
    answers.add((await api('c').request('GET', `/room/${room}`)).status);
  }
  return { answers, owners };
}

async function restart(label: Label): Promise<void> {
  await nodes.get(label)?.kill();
  nodes.set(label, await startNode({ env: { ...settings(label, trio.mapperPort), ...envs.get(label) } }));
  await until('the cluster is complete', async () => {
    const { body } = await api('c').request('GET', '/cluster');
    return body.data.nodes.length === 3;
  });
}

describe('a room that moves while a node is killed', () => {
  test.each(DEATHS.filter(([point]) => nightly || BY_DAY.includes(point)))(
    'at the point %s of %s never has two owners, and is not denied while one lives',
    async (point, victim, survivor) => {
      const room = await createOnGiver();
      await api(GIVER).addPeer(room);
      const before = (await api(GIVER).request('GET', `/room/${room}`)).body;
      const fault = ['move-fault', victim, point, 'kill', '--for', '1m', '--yes'];
      expect(await trio.run(fault, { env: { BLOOM_NODE: trio.name('c') } })).toMatchObject({ code: 0 });
      expect((await trio.document('faults', victim, '--node', trio.name('c'))).nodes[0].faults).toMatchObject([
        { kind: 'move-fault', target: point },
      ]);

      let isOver = false;
      const seen = watch(room, () => isOver);
      const order = api('c')
        .request('POST', `/room/${room}/move`, { node: trio.name(TAKER) })
        .catch(() => undefined);
      await until('the node is dead', () => !isAlive(victim));
      await new Promise((done) => setTimeout(done, LOOK_MS));
      isOver = true;
      const { answers, owners } = await seen;
      await order;

      expect(owners).toBe(1);
      if (survivor !== undefined) {
        expect(answers).not.toContain(404);
        expect(await has(survivor, room)).toBe(true);
        await restart(victim);
        for (const label of [GIVER, TAKER, 'c'] as const) {
          await until(
            'every node finds it',
            async () => (await api(label).request('GET', `/room/${room}`)).status === 200,
          );
          expect((await api(label).request('GET', `/room/${room}`)).body).toEqual(before);
        }
        expect(receiver.heard.filter((line) => line.endsWith(room) && /Crashed|Deleted/.test(line))).toEqual([]);
        await api('c').deleteRoom(room);
        return;
      }
      await restart(victim);
      await until('the room is gone', async () => (await api('c').request('GET', `/room/${room}`)).status === 404);
      expect(await Promise.all([GIVER, TAKER].map((label) => has(label as Label, room)))).toEqual([false, false]);
      if (victim === TAKER) await until('the giver reports it', () => receiver.heard.includes(`roomCrashed ${room}`));
    },
    60_000,
  );
});
