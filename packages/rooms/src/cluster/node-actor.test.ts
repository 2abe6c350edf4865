import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { ActorRef } from '@bloom/actors';
import { defaultRoomConfig } from '../room-service.js';
import type { RoomRef } from '../room/room-messages.js';
import { testNode, type TestNode } from '../testing/index.js';
import { nodeBehaviour } from './node-actor.js';
import type { NodeProtocol } from './node-messages.js';

let node: TestNode;
let actor: ActorRef<NodeProtocol>;

beforeEach(() => {
  node = testNode();
  const { host: rooms, clock } = node;
  const ignore = (): void => undefined;
  const claim = (): Promise<boolean> => Promise.resolve(true);
  const arrivals = {
    offer: async () => ({ refused: 'not in this test' }),
    take: async () => null,
    keep: ignore,
    webhooksOver: ignore,
  };
  const departures = { says: () => 'unknown' as const, takerOf: () => undefined };
  const standby = {
    pulse: () => ({ process: '', votes: [], noted: true }),
    mirror: () => ({ kept: true }),
    forget: () => true,
    vote: () => ({ granted: false }) as const,
    isMirrored: () => false,
    isOrphaned: () => false,
  };
  actor = node.system.spawn(
    nodeBehaviour({
      rooms,
      arrivals,
      departures,
      standby,
      clock,
      newId: randomUUID,
      claim,
      unclaim: ignore,
      onSnapshot: ignore,
      onAnnounce: ignore,
    }),
  );
});
afterEach(() => node.close());

async function create(roomId: string) {
  const { system, host } = node;
  const { forwardedTracks } = host.load();
  const reserved = await system.call(actor, { type: 'reserve', seen: { forwardedTracks, rooms: 9 } });
  if (!('granted' in reserved)) throw new Error('the node is busier than it can be');
  const config = { ...defaultRoomConfig, roomId };
  const outcome = system.call(actor, { type: 'create', reservation: reserved.granted, creation: roomId, config });
  await system.idle();

  return { outcome };
}

test('withdraws a creation even after the system clock was changed and another creation started', async () => {
  const open = node.media.holdRooms();
  const first = await create('first');
  node.clock.jump(60_000);
  const second = await create('second');
  node.system.cast(actor, { type: 'withdraw', creation: 'first' });
  await node.system.idle();
  open();
  expect((await first.outcome).ok).toBe(false);
  expect((await second.outcome).ok).toBe(true);
  expect(node.host.views().map(({ id }) => id)).toEqual(['second']);
});

test('withdraws a creation within a minute, and never ends another room that has taken its id', async () => {
  const { system, clock, host } = node;
  const ids = (): string[] => host.views().map(({ id }) => id);
  const withdraw = async (creation: string): Promise<void> => {
    system.cast(actor, { type: 'withdraw', creation });
    await system.idle();
  };
  for (const roomId of ['late', 'again', 'other']) expect((await (await create(roomId)).outcome).ok).toBe(true);
  await host.deleteRoom('again');
  await host.createRoom({ ...defaultRoomConfig, roomId: 'again' });
  await clock.advance(55_000);
  expect((await (await create('next')).outcome).ok).toBe(true);
  await withdraw('late');
  await withdraw('again');
  expect(ids().toSorted()).toEqual(['again', 'next', 'other']);
});

test('bounds memory and load when a member withdraws and reserves endlessly', async () => {
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

/** Gives `kitchen` away; `taken` settles once it runs elsewhere. */
async function give(taken: Promise<RoomRef>): Promise<void> {
  await node.host.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
  const carry = { offer: async () => null, given: () => taken, over: () => undefined };
  expect(await node.host.giveRoom('kitchen', carry)).toBeNull();
}

test('shows a room that has moved away as its new owner does, once that runs it', async () => {
  let opened: (ref: RoomRef) => void = () => undefined;
  await give(new Promise((resolve) => (opened = resolve)));
  const view = node.system.call(actor, { type: 'viewRoom', roomId: 'kitchen', text: true });
  await node.host.createRoom({ ...defaultRoomConfig, roomId: 'elsewhere' });
  opened(node.host.roomRef('elsewhere') as RoomRef);
  expect(JSON.parse((await view) as string)).toMatchObject({ id: 'elsewhere' });
});

test('does not deny a room that has moved away while its new owner does not answer', async () => {
  await give(new Promise(() => {}));
  const view = node.system.call(actor, { type: 'viewRoom', roomId: 'kitchen' }, 4_000);
  const refused = expect(view).rejects.toMatchObject({ code: 'CRASHED' });
  await node.system.idle();
  await node.advance(3.9);
  await refused;
});
