import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { ActorRef } from '@bloom/actors';
import { defaultRoomConfig } from '../room-service.js';
import { testNode, type TestNode } from '../testing/index.js';
import { nodeBehaviour } from './node-actor.js';
import type { NodeProtocol } from './node-messages.js';

let node: TestNode;
let actor: ActorRef<NodeProtocol>;

beforeEach(() => {
  node = testNode();
  const { local: rooms, clock } = node;
  const ignore = (): void => undefined;
  const claim = (): Promise<boolean> => Promise.resolve(true);
  actor = node.system.spawn(
    nodeBehaviour({ rooms, clock, claim, unclaim: ignore, onSnapshot: ignore, onAnnounce: ignore }),
  );
});
afterEach(() => node.close());

async function create(roomId: string) {
  const { system, local } = node;
  const { forwardedTracks } = local.load();
  const reserved = await system.call(actor, { type: 'reserve', seen: { forwardedTracks, rooms: 9 } });
  if (!('granted' in reserved)) throw new Error('the node is busier than it can be');
  const config = { ...defaultRoomConfig, roomId };
  const outcome = system.call(actor, { type: 'create', reservation: reserved.granted, creation: roomId, config });
  await system.idle();

  return { outcome };
}

test('a creation can be withdrawn after a change of the system clock and another creation', async () => {
  const open = node.media.holdRooms();
  const first = await create('first');
  node.clock.jump(60_000);
  const second = await create('second');
  node.system.cast(actor, { type: 'withdraw', creation: 'first' });
  await node.system.idle();
  open();
  expect((await first.outcome).ok).toBe(false);
  expect((await second.outcome).ok).toBe(true);
  expect(node.local.views().map(({ id }) => id)).toEqual(['second']);
});

test('a creation can be withdrawn within a minute, which never ends another room that has taken its id', async () => {
  const { system, clock, local } = node;
  const ids = (): string[] => local.views().map(({ id }) => id);
  const withdraw = async (creation: string): Promise<void> => {
    system.cast(actor, { type: 'withdraw', creation });
    await system.idle();
  };
  for (const roomId of ['late', 'again', 'other']) expect((await (await create(roomId)).outcome).ok).toBe(true);
  await local.deleteRoom('again');
  await local.createRoom({ ...defaultRoomConfig, roomId: 'again' });
  await clock.advance(55_000);
  expect((await (await create('next')).outcome).ok).toBe(true);
  await withdraw('late');
  await withdraw('again');
  expect(ids().toSorted()).toEqual(['again', 'next', 'other']);
});

test('a member that withdraws and reserves endlessly fills neither the memory nor the node', async () => {
  const { system } = node;
  for (let i = 0; i < 12_000; i += 1) {
    system.cast(actor, { type: 'withdraw', creation: `${i}` });
    // The mailbox holds 10,000 messages.
    if (i % 1_000 === 0) await system.idle();
  }
  await system.idle();
  const seen = { forwardedTracks: 0, rooms: 1_000_000 };
  for (let i = 0; i < 1_500; i += 1) system.cast(actor, { type: 'reserve', seen });
  await system.idle();
  const { state } = system.inspect(actor) as unknown as { state: { creations: unknown[]; reservations: number } };
  expect(state.creations).toHaveLength(10_000);
  expect(state.reservations).toBe(1_000);
});
