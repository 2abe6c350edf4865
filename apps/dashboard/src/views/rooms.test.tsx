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

test('a server without rooms says how to create one', async () => {
  await page.show(<Rooms />);
  await page.shows('No rooms yet');
});

test('a room created by another program appears, and disappears when it is deleted', async () => {
  await page.show(<Rooms />);
  await page.shows('No rooms yet');
  await page.api.createRoom({ roomId: 'kitchen', maxPeers: 4 });
  await page.shows('kitchen0 of 4');
  await page.api.deleteRoom('kitchen');
  await page.hides('kitchen');
});

test('a filter keeps the rooms that contain its text, and says if there are none', async () => {
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

test('a new room has the options that were filled in', async () => {
  await page.show(<Rooms />);
  await page.click('New room');
  await page.fill('Name', 'with-options');
  await page.fill('Most people', '4');
  await page.fill('Video codec', 'h264');
  await page.click('Create');
  await page.goes('#/rooms/with-options');
  const { config } = await page.api.getRoom('with-options');
  expect(config).toMatchObject({ maxPeers: 4, videoCodec: 'h264', peerlessPurgeTimeout: null });
});

test('a taken name is reported in the dialog, which stays open', async () => {
  await page.api.createRoom({ roomId: 'taken' });
  await page.show(<Rooms />);
  await page.click('New room');
  await page.fill('Name', 'taken');
  await page.click('Create');
  await page.shows('room already exists');
  expect(document.querySelector('dialog')).not.toBeNull();
});
