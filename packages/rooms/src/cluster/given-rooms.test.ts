// A room whose taker dies after the giver has decided, seen from each node.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { defaultRoomConfig } from '../room-service.js';
import { TestCluster } from '../testing/index.js';

let cluster: TestCluster;
let clock: ManualClock;
/** Lets time pass in steps, so that messages need much less time than any limit. */
async function advance(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) {
    clock.advance(10);
    for (let turns = 0; turns < 5; turns += 1) await new Promise((done) => setImmediate(done));
  }
}

/** Returns the error of a request that waits until its node gives up. */
async function errorOf(request: Promise<unknown>): Promise<unknown> {
  const error = request.then(
    () => 'no error',
    ({ code, message }: { code: string; message: string }) => `${code} ${message}`,
  );
  await advance(5_000);

  return error;
}

beforeEach(async () => {
  clock = new ManualClock();
  cluster = new TestCluster(['giver', 'taker', 'other'], { clock });
  await cluster.node('giver').host.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
  await cluster.settled();
  cluster.before('takeRoom', () => cluster.kill('taker'));
  const moved = cluster.node('giver').registry.departures.moveTo('kitchen', 'taker');
  await advance(2_000);
  expect(await moved).toMatchObject({ outcome: 'unconfirmed', node: 'taker' });
});

afterEach(async () => {
  const closed = Promise.all(cluster.nodes.map(({ registry }) => registry.close()));
  await advance(6_000);
  await closed;
  await cluster.close();
});

test.each(['giver', 'other'])(
  'a room is on its dead taker, as %s answers to a question and to a change',
  async (name) => {
    const { rooms } = cluster.node(name);
    const where = /taker, which is currently unreachable$/;
    expect(await errorOf(rooms.getRoom('kitchen'))).toMatch(where);
    expect(await errorOf(rooms.updateRoom('kitchen', { maxPeers: 4 }))).toMatch(where);
  },
);
