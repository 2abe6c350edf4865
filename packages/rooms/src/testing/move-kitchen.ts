import type { RoomRef } from '../room/room-messages.js';
import type { RoomSnapshot } from '../room/room-snapshot.js';
import type { TestNode } from './test-node.js';

/** Moves the room `kitchen`. Its snapshot travels as JSON, as between nodes. */
export async function moveKitchen(from: TestNode, to: TestNode): Promise<RoomSnapshot> {
  let text = '';
  const createdAt = from.host.createdAt('kitchen') ?? 0;
  const stays = await from.host.giveRoom('kitchen', {
    offer: async (snapshot) => {
      text = JSON.stringify(snapshot);
      return null;
    },
    given: () => new Promise<RoomRef>(() => {}),
    over: () => undefined,
  });
  if (stays !== null) throw new Error(`the room stays: ${stays}`);
  const snapshot = JSON.parse(text) as RoomSnapshot;
  const held = await to.host.holdRoom(snapshot, 'from');
  await held.open(snapshot, createdAt);
  await to.system.idle();
  return snapshot;
}
