// A node whose news of a room is older than the room, or whose release is newer than the room's.
import { afterEach, expect, test } from '@jest/globals';
import { createLogger } from '@bloom/log';
import { defaultRoomConfig } from '../room-service.js';
import { TestCluster } from '../testing/test-cluster.js';
import { homesOf } from './claims.js';

let cluster: TestCluster;
afterEach(() => cluster.close());

test('finds a room that was recreated on the same node, once its announcement has arrived', async () => {
  cluster = new TestCluster(['a', 'b']);
  const [a, b] = [cluster.node('a'), cluster.node('b')];
  const create = () => b.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
  a.host.forwardedTracks = 1;
  await create();
  await cluster.settled();
  cluster.hold('b', 'a');
  await b.host.deleteRoom('kitchen');
  await create();
  const deleted = a.rooms.deleteRoom('kitchen');
  cluster.letThrough('b', 'a');
  await deleted;
  expect(b.host.views()).toEqual([]);
});

test('logs the calls that an older owner does not know once per room, however often clients repeat them', async () => {
  const lines: string[] = [];
  const log = createLogger({ level: 'warning', structured: true, sink: (line: string) => void lines.push(line) });
  cluster = new TestCluster(['a', 'b'], { log });
  const [a, b] = [cluster.node('a'), cluster.node('b')];
  a.host.forwardedTracks = 1;
  for (const roomId of ['kitchen', 'yard']) await b.rooms.createRoom({ ...defaultRoomConfig, roomId });
  await cluster.settled();
  const ask = (roomId: string) => a.rooms.ask(roomId, { type: 'laterCall' } as never);
  for (const roomId of ['kitchen', 'kitchen', 'yard', 'kitchen'])
    await expect(ask(roomId)).rejects.toMatchObject({ code: 'OWNER_UNREACHABLE' });
  const failures = lines.filter((line) => line.includes('cluster.forward_failed'));
  expect(failures.map((line) => JSON.parse(line))).toMatchObject([
    { metadata: { room_id: 'kitchen', node: 'b', call: 'laterCall' } },
    { metadata: { room_id: 'yard', node: 'b', call: 'laterCall' } },
  ]);
});

test('keeps the id of a moved room whose announcement is late, although the first look-up is late too', async () => {
  cluster = new TestCluster(['a', 'b', 'c']);
  const [a, c] = [cluster.node('a'), cluster.node('c')];
  const ids = Array.from({ length: 100 }, (_, i) => `room-${i}`);
  const roomId = ids.find((id) => homesOf(id, ['b', 'c'])[0] === 'c') as string;
  await a.host.createRoom({ ...defaultRoomConfig, roomId });
  await cluster.settled();
  cluster.hold('b', 'c');
  expect(await a.registry.departures.moveTo(roomId, 'b')).toMatchObject({ outcome: 'moved' });
  for (const other of ['b', 'c']) cluster.cut('a', other, true);
  cluster.before('roomRef', () => {
    cluster.hold('c', 'b');
    cluster.before('roomRef', () => cluster.letThrough('c', 'b'));
  });
  await expect(c.rooms.createRoom({ ...defaultRoomConfig, roomId })).rejects.toMatchObject({ code: 'ROOM_EXISTS' });
  await Promise.all(cluster.nodes.map(({ registry }) => registry.close()));
});
