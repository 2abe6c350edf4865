import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { startTestNode, type TestNode } from '@bloom/app-bloom/testing';
import { TestPage } from '../testing/page.js';
import { Rooms } from './rooms.js';

let node: TestNode;
let page: TestPage;
beforeAll(async () => {
  node = await startTestNode();
});
afterAll(() => node.dispose());
beforeEach(async () => {
  page = await TestPage.open(node.url, { token: node.settings.http.apiToken });
});
afterEach(async () => {
  for (const { id } of await page.api.listRooms()) await page.api.deleteRoom(id);
  await page.close();
});

test('says how to create a room on a server without rooms', async () => {
  await page.show(<Rooms />);
  await page.shows('No rooms yet');
});

test('shows a room created by another program, and hides it when it is deleted', async () => {
  await page.show(<Rooms />);
  await page.shows('No rooms yet');
  await page.api.createRoom({ roomId: 'kitchen', maxPeers: 4 });
  await page.shows('kitchen0 of 4');
  await page.api.deleteRoom('kitchen');
  await page.hides('kitchen');
});

test('counts people who are connected, not seats that nobody has taken', async () => {
  await page.api.createRoom({ roomId: 'kitchen' });
  const { token } = await page.api.addPeer('kitchen');
  await page.show(<Rooms />);
  await page.shows('1 room, 0 people');
  const client = await node.peerSocket();
  await client.authenticate(token);
  client.send({ type: 'connect', data: { metadata: null } });
  await client.next('connected');
  await page.shows('1 room, 1 person');
});

test("keeps the rooms that contain the filter's text, and says if there are none", async () => {
  await page.api.createRoom({ roomId: 'kitchen' });
  await page.api.createRoom({ roomId: 'garden' });
  await page.show(<Rooms />);
  await page.shows('garden');
  await page.fill('Filter rooms', 'KIT');
  await page.hides('garden');
  expect(page.text).toContain('kitchen');
  await page.fill('Filter rooms', 'nowhere');
  await page.shows('No room is called “nowhere”');
});

test('creates a new room with the options that were entered', async () => {
  await page.show(<Rooms />);
  await page.click('New room');
  await page.fill('Name', 'with-options');
  await page.fill('Maximum number of people', '4');
  await page.fill('Video codec', 'h264');
  await page.click('Create');
  await page.goes('#/rooms/with-options');
  const { config } = await page.api.getRoom('with-options');
  expect(config).toMatchObject({ maxPeers: 4, videoCodec: 'h264', peerlessPurgeTimeout: null });
});

test('reports a taken name in the dialog, which stays open', async () => {
  await page.api.createRoom({ roomId: 'taken' });
  await page.show(<Rooms />);
  await page.click('New room');
  await page.fill('Name', 'taken');
  await page.click('Create');
  await page.shows('room already exists');
  expect(document.querySelector('dialog')).not.toBeNull();
});
