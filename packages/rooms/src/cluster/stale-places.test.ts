// A node whose news of a room is older than the room.
import { afterEach, expect, test } from '@jest/globals';
import { defaultRoomConfig } from '../room-service.js';
import { TestCluster } from '../testing/test-cluster.js';

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
