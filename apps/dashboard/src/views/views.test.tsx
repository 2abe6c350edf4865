// The views of the whole server, backed by a real node.
import { startTestNode, type TestNode } from '@bloom/app-bloom/testing';
import { createLogger } from '@bloom/log';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { TestPage } from '../testing/page.js';
import { Watch } from '../watch/watch.js';
import { ClusterView } from './cluster.js';
import { ComponentsView } from './components.js';
import { Events } from './events.js';
import { Logs } from './logs.js';
import { People } from './people.js';

let node: TestNode;
let page: TestPage;
beforeAll(async () => {
  node = await startTestNode({}, { log: createLogger({ sink: () => undefined }) });
});
afterAll(() => node.dispose());
beforeEach(async () => {
  page = await TestPage.open(node.url, { token: node.settings.http.apiToken });
});
afterEach(async () => {
  for (const { id } of await page.api.listRooms()) await page.api.deleteRoom(id);
  await page.close();
});

const live = (): Promise<void> => page.until('the page is live', () => page.live.view().connected);

test('people in all rooms are listed, and found by name, room and id', async () => {
  await page.api.createRoom({ roomId: 'kitchen' });
  await page.api.createRoom({ roomId: 'garden' });
  await page.api.addPeer('kitchen', { metadata: { name: 'Cyanea' } });
  const { peer } = await page.api.addPeer('garden', { metadata: { name: 'Velella' } });
  await page.show(<People />);
  await page.shows('2 people');
  for (const text of ['VEL', 'gard', peer.id]) {
    await page.fill('Filter people', text);
    await page.hides('Cyanea');
    expect(page.text).toContain('Velella');
  }
  await page.fill('Filter people', 'nobody');
  await page.shows('Nobody matches “nobody”');
});

test('a server without people says how to become the first', async () => {
  await page.show(<People />);
  await page.shows('Nobody is here');
  expect(page.find<HTMLAnchorElement>('Start a call').hash).toBe('#/call');
});

test('events appear as they happen, and can be filtered, paused and cleared', async () => {
  await page.show(<Events />);
  await live();
  await page.shows('Nothing has happened since you signed in');
  await page.api.createRoom({ roomId: 'kitchen' });
  const { peer } = await page.api.addPeer('kitchen');
  await page.shows(`peerAddedkitchenpeerId ${peer.id}`);
  await page.fill('Filter events', 'roomcreated');
  await page.hides('peerAdded');
  await page.fill('Filter events', '');
  await page.click('Pause');
  await page.api.deleteRoom('kitchen');
  await page.until('the event is there', () => page.live.view().events.at(-1)?.type === 'roomDeleted');
  expect(page.text).not.toContain('roomDeleted');
  await page.click('Go on');
  await page.shows('roomDeleted');
  await page.click('Clear');
  await page.shows('Nothing has happened since you signed in');
});

test('the node that serves the page can be drained and accept rooms again', async () => {
  await page.show(<ClusterView />);
  await page.shows('a single node');
  await page.shows('serves this page');
  await page.click('Drain: take no new rooms');
  await page.shows('Take new rooms again');
  await expect(page.api.createRoom()).rejects.toMatchObject({ status: 503 });
  await page.click('Take new rooms again');
  await page.shows('Drain: take no new rooms');
  const { room } = await page.api.createRoom();
  expect(room.peers).toEqual([]);
});

test('the log can be searched, and a line shows all of its fields', async () => {
  await page.api.createRoom({ roomId: 'for-the-log' });
  await page.show(<Logs />);
  await page.fill('Only lines with this text', 'for-the-log');
  await page.shows('room.created');
  await page.fill('Only lines with this text', 'in no line at all');
  await page.shows('No line matches');
  await page.fill('Only lines with this text', 'for-the-log');
  await page.shows('room.created');
  await page.click('room.created');
  await page.shows('"room_id": "for-the-log"');
});

test('only lines of the chosen level are shown', async () => {
  await page.api.createRoom({ roomId: 'quiet' });
  await page.show(<Logs />);
  await page.fill('Only lines with this text', 'quiet');
  await page.shows('room.created');
  await page.fill('Least severity', 'error');
  await page.shows('No line matches');
});

test('a server without recordings and components says so', async () => {
  await page.show(<ComponentsView />);
  await page.shows('No component is running');
  await page.shows('Nothing has been recorded');
});

test('rooms with people in them can be watched', async () => {
  await page.api.createRoom({ roomId: 'empty' });
  await page.api.createRoom({ roomId: 'kitchen' });
  await page.api.addPeer('kitchen');
  await page.show(<Watch />);
  await page.shows('1 person');
  expect(page.text).not.toContain('empty');
  expect(page.find<HTMLAnchorElement>('kitchen').hash).toBe('#watch=kitchen');
});
