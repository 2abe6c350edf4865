import { startTestNode, type TestNode } from '@bloom/app-bloom/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { TestPage } from '../../testing/page.js';
import { PersonPage } from './person-page.js';
import { RoomPage } from './room-page.js';

let node: TestNode;
let page: TestPage;
beforeAll(async () => {
  node = await startTestNode();
});
afterAll(() => node.dispose());
beforeEach(async () => {
  page = await TestPage.open(node.url, { token: node.settings.http.apiToken });
  await page.api.createRoom({ roomId: 'kitchen', videoCodec: 'h264', maxPeers: 4, peerlessPurgeTimeout: 60 });
});
afterEach(async () => {
  for (const { id } of await page.api.listRooms()) await page.api.deleteRoom(id);
  await page.close();
});

const room = <RoomPage roomId="kitchen" />;

test('shows the settings of a room and the people in it', async () => {
  await page.api.addPeer('kitchen', { metadata: { name: 'Cyanea' } });
  await page.show(room);
  await page.shows('H264, at most 4 people, removed 60 s after the last person left');
  await page.shows('Cyaneadisconnected');
});

test('says that a node without a cluster had no choice of where to put a room', async () => {
  await page.show(room);
  await page.shows('Where it runs');
  await page.shows('a node without a cluster makes none');
});

test('reports a missing room, with a link back', async () => {
  await page.show(<RoomPage roomId="nowhere" />);
  await page.shows('This room does not exist');
  expect(page.find<HTMLAnchorElement>('All rooms').hash).toBe('#/rooms');
});

test('removes the setting of an emptied field and keeps the others', async () => {
  await page.show(room);
  await page.shows('at most 4 people');
  await page.click('Settings');
  await page.fill('Maximum number of people', '');
  await page.click('Save');
  await page.shows('no limit of people');
  const { config } = await page.api.getRoom('kitchen');
  expect(config.maxPeers).toBeNull();
  expect(config.peerlessPurgeTimeout).toBe(60);
});

test('gives a program that speaks WHIP an address and a valid token', async () => {
  await page.show(room);
  await page.shows('at most 4 people');
  await page.click('Publish from OBS');
  await page.fill('Name that others see', 'Studio');
  await page.click('Get an address');
  await page.shows('The token is shown once');
  const { status } = await fetch(page.find<HTMLInputElement>('Server').value, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${page.find<HTMLInputElement>('Bearer token').value}`,
      'content-type': 'application/sdp',
    },
    body: 'no offer',
  });
  // The token is valid; the offer is not.
  expect(status).toBe(400);
  await page.shows('Studio');
  const [peer] = (await page.api.getRoom('kitchen')).peers;
  expect(peer?.permissions?.subscribe).toBe(false);
});

test('reports a component that the server refuses in the dialog', async () => {
  await page.show(room);
  await page.shows('None is running');
  await page.click('Start a component');
  await page.fill('Kind', 'file');
  await page.fill('Path', 'missing.ogg');
  await page.click('Start');
  await page.shows('File not found');
});

test('offers a stream that takes any codec, and says in a room without H.264 that cameras need it', async () => {
  await page.api.createRoom({ roomId: 'garden' });
  await page.show(<RoomPage roomId="garden" />);
  await page.shows('None is running');
  await page.click('Start a component');
  expect(page.find<HTMLInputElement>('Take any codec').checked).toBe(true);
  expect(page.text).not.toContain('This kind needs');
  await page.fill('Kind', 'rtsp');
  await page.shows('This kind needs a room with the video codec h264');
});

test('deletes a room only after confirmation', async () => {
  await page.show(room);
  await page.shows('at most 4 people');
  await page.click('Delete');
  await page.shows('Everyone in it is disconnected');
  expect(await page.api.listRooms()).toHaveLength(1);
  await page.click('Delete the room');
  await page.shows('This room does not exist');
  expect(await page.api.listRooms()).toEqual([]);
  await page.goes('#/rooms');
});

test("applies changes to a person's permissions immediately", async () => {
  const { peer } = await page.api.addPeer('kitchen', { metadata: { name: 'Cyanea' } });
  // The page has read the new state, so its next press is a new action.
  const permissions = () => page.live.view().rooms?.[0]?.peers[0]?.permissions;
  await page.show(<PersonPage roomId="kitchen" peerId={peer.id} />);
  await page.shows('Nothing is published');
  await page.click('Publish audio');
  await page.until('sound is forbidden', () => String(permissions()?.publish) === 'video,data');
  await page.click('Publish audio');
  await page.until('everything is allowed', () => permissions()?.publish === true);
  await page.click('See and hear others');
  await page.until('others are hidden', () => permissions()?.subscribe === false);
});

test('removes a person with a reason that reaches the client', async () => {
  const { id, token } = await node.addPeer('kitchen');
  const client = await node.peerSocket();
  await client.authenticate(token);
  client.send({ type: 'connect', data: { metadata: { name: 'Ann' } } });
  await client.next('connected');
  await page.show(<PersonPage roomId="kitchen" peerId={id} />);
  await page.shows('Annconnected');
  await page.click('Remove');
  await page.fill('Reason, for the client', 'Out of turn');
  await page.click('Remove from the room');
  expect(await client.closed).toBe('1000 Out of turn');
  await page.shows('This person is no longer in the room');
  await page.goes('#/rooms/kitchen');
});

test('says that a room of a single node can move nowhere', async () => {
  await page.show(room);
  await page.click('Move');
  await page.shows('There is no other node.');
});
