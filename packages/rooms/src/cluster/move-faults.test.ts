// A move with one fault at each of its steps, each once. The simulation combines them at random.
import { describe, expect, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import { defaultRoomConfig } from '../room-service.js';
import { TestCluster } from '../testing/test-cluster.js';

/** How long a fault lasts that passes, and how often the room is looked at. */
const LASTS_MS = 300;
const LOOK_MS = 5;

/** The steps by the message that is about to be sent; `gone` is the end of the move. */
const STEPS = ['reserve', 'offerRoom', 'takeRoom', 'announce', 'gone'] as const;
type Step = (typeof STEPS)[number];
/** Steps at which the giver still owns the room, and at which the taker does. */
const GIVERS: readonly Step[] = ['reserve', 'offerRoom'];
const TAKERS: readonly Step[] = ['announce', 'gone'];

const owners = (cluster: TestCluster): string[] =>
  cluster.living.filter(({ host }) => host.view('kitchen') !== undefined).map(({ name }) => name);

/** Returns what a node answers when it is asked for the room. */
const answerOf = (cluster: TestCluster, name: string): Promise<string> =>
  cluster
    .node(name)
    .rooms.getRoom('kitchen')
    .then(
      () => 'the room',
      ({ code }: { code: string }) => code,
    );

type Fault = (cluster: TestCluster) => unknown;

/**
 * Moves a room from `a` to `b` with a fault at the step, then checks the end. Meanwhile nobody may see two owners, or
 * deny a room that lives.
 */
async function moveWith(step: Step, fault: Fault, end: (cluster: TestCluster) => Promise<void>): Promise<void> {
  const cluster = new TestCluster(['a', 'b', 'c']);
  try {
    await cluster.node('a').host.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
    await cluster.settled();
    let strike = (): void => undefined;
    const struck = new Promise<void>((done) => (strike = done));
    const suffer = (): void => {
      fault(cluster);
      strike();
    };
    if (step !== 'gone') cluster.before(step, suffer);
    let isOver = false;
    const moving = cluster.node('a').registry.departures.moveTo('kitchen', 'b');
    const moved = moving.then(() => step === 'gone' && suffer());
    const lasting = Promise.all([struck, moved]).then(() => pause(2 * LASTS_MS));
    // A giver that is dead ends no move.
    const over = Promise.race([lasting, struck.then(() => pause(4 * LASTS_MS))]).then(() => (isOver = true));
    while (!isOver) {
      expect(owners(cluster).length).toBeLessThanOrEqual(1);
      expect(await answerOf(cluster, 'c')).not.toBe('ROOM_NOT_FOUND');
      await pause(LOOK_MS);
    }
    await over;
    await end(cluster);
  } finally {
    await Promise.all(cluster.nodes.map(({ registry }) => registry.close()));
    await cluster.close();
  }
}

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
const later = (act: () => void): void => void setTimeout(act, LASTS_MS);

/** What a taker suffers for a while. */
const PASSING: readonly (readonly [string, Fault])[] = [
  [
    'is frozen',
    (cluster) => {
      cluster.freeze('b');
      later(() => cluster.thaw('b'));
    },
  ],
  [
    'loses its link to the giver',
    (cluster) => {
      cluster.cut('a', 'b');
      later(() => cluster.link('a', 'b'));
    },
  ],
  [
    'is slow to hear from the giver',
    (cluster) => {
      cluster.hold('a', 'b');
      later(() => cluster.letThrough('a', 'b'));
    },
  ],
];

describe.each(STEPS)('when a move is at the step %s', (step) => {
  test.concurrent.each(PASSING)(
    'a taker that %s for a while leaves one owner, which every node finds',
    async (_what, fault) => {
      await moveWith(step, fault, async (cluster) => {
        await until(() => owners(cluster).length === 1);
        for (const { name } of cluster.nodes) await until(async () => (await answerOf(cluster, name)) === 'the room');
      });
    },
    30_000,
  );

  test.concurrent('a taker that dies leaves the room to the giver until it has decided', async () => {
    const kill: Fault = (cluster) => cluster.kill('b');
    await moveWith(step, kill, async (cluster) => {
      expect(owners(cluster)).toEqual(GIVERS.includes(step) ? ['a'] : []);
      expect(await answerOf(cluster, 'c')).toBe(GIVERS.includes(step) ? 'the room' : 'OWNER_UNREACHABLE');
    });
  }, 30_000);

  test.concurrent('a giver that dies takes the room with it until the taker runs it', async () => {
    const kill: Fault = (cluster) => cluster.kill('a');
    await moveWith(step, kill, async (cluster) => {
      expect(owners(cluster)).toEqual(TAKERS.includes(step) ? ['b'] : []);
      expect(await answerOf(cluster, 'c')).toBe(TAKERS.includes(step) ? 'the room' : 'OWNER_UNREACHABLE');
    });
  }, 30_000);
});
