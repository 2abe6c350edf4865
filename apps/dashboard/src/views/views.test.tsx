// The views of the whole server, backed by a real node.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startTestNode, type TestNode } from '@bloom/app-bloom/testing';
import { createLogger } from '@bloom/log';
import { TestConnection } from '@bloom/react/testing';
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

test('lists people in all rooms, and finds them by name, room and id', async () => {
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

test('says how to become the first person on a server without people', async () => {
  await page.show(<People />);
  await page.shows('Nobody is here');
  expect(page.find<HTMLAnchorElement>('Start a call').hash).toBe('#/call');
});

test('shows events as they happen, with a filter, a pause and a way to clear them', async () => {
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

test('drains the node that serves the page and lets it accept rooms again', async () => {
  await page.show(<ClusterView />);
  await page.shows('a single node');
  await page.shows('serves this page');
  // There is nowhere to move rooms to.
  expect(page.text).not.toContain('Drain and move');
  await page.click('Drain: take no new rooms');
  await page.shows('Take new rooms again');
  await expect(page.api.createRoom()).rejects.toMatchObject({ status: 503 });
  await page.click('Take new rooms again');
  await page.shows('Drain: take no new rooms');
  const { room } = await page.api.createRoom();
  expect(room.peers).toEqual([]);
});

test('searches the log, and shows all fields of a line', async () => {
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

test('shows only lines of the chosen level', async () => {
  await page.api.createRoom({ roomId: 'quiet' });
  await page.show(<Logs />);
  await page.fill('Only lines with this text', 'quiet');
  await page.shows('room.created');
  await page.fill('Least severity', 'error');
  await page.shows('No line matches');
});

test('says so on a server without recordings and components', async () => {
  await page.show(<ComponentsView />);
  await page.shows('No component is running');
  await page.shows('No stream has been recorded');
  await page.shows('No tracks have been recorded');
});

const whereItMixes = ((): typeof test | typeof test.skip => {
  try {
    createRequire(import.meta.url).resolve('node-av/lib');
    return test;
  } catch {
    return test.skip;
  }
})();

/** Leaves a finished recording of a microphone on the node. */
async function recorded(room: string): Promise<string> {
  const folder = join(node.settings.resourcesPath, 'raw_recordings', room, 'part_2026-01-02T03-04-05.000Z');
  await mkdir(folder, { recursive: true });
  const track = {
    type: 'audio',
    name: 'Ann',
    offset: 0,
    start_timestamp: 0,
    end_timestamp: 96_000,
    clock_rate: 48_000,
  };
  await writeFile(join(folder, 'a.ogg'), 'sound');
  await writeFile(join(folder, 'report.json'), JSON.stringify({ tracks: { 'a.ogg': track } }));

  return folder;
}

test('recordings of tracks show their state, and are played and deleted', async () => {
  const folder = await recorded('kitchen');
  await page.show(<ComponentsView />);
  await page.shows('finished 1 track, 2 s, 0.0 MB');
  await page.click('Play kitchen');
  await page.shows('Ann, audio');
  await page.click('Load Ann, audio');
  await page.until('there is a player', () => document.querySelector('audio[aria-label="Ann, audio"]') !== null);
  await page.click('Close');
  await page.click('Delete kitchen');
  await page.shows('No tracks have been recorded');
  expect(existsSync(folder)).toBe(false);
});

whereItMixes('recordings of tracks are mixed, and the movie is played [needs node-av]', async () => {
  const folder = await recorded('kitchen');
  await page.show(<ComponentsView />);
  await page.click('Mix kitchen');
  // The track is damaged.
  await page.shows('Movie: failed');
  await page.shows('Mix again');
  const notes = join(node.settings.resourcesPath, 'mixed_recordings', 'kitchen');
  const [name] = await readdir(notes);
  const note = JSON.parse(await readFile(join(notes, name!), 'utf8'));
  await writeFile(join(folder, 'mix.mp4'), 'movie');
  const { reason: _reason, ...made } = { ...note, state: 'finished', seconds: 2, bytes: 5 };
  await writeFile(join(notes, name!), JSON.stringify(made));
  await page.shows('Movie: finished 2 s, 0.0 MB');
  await page.click('Play movie of kitchen');
  await page.click('Load Movie');
  await page.until('there is a player', () => document.querySelector('video[aria-label="Movie"]') !== null);
  await page.click('Close');
});

test('a recording of tracks that failed says why', async () => {
  await rm(join(await recorded('hall'), 'report.json'));
  await page.show(<ComponentsView />);
  await page.shows('failed');
  await page.shows('there is no report of its tracks');
});

/** Somebody who is connected to the room. */
async function connect(roomId: string): Promise<void> {
  const client = await node.peerSocket();
  await client.authenticate((await node.addPeer(roomId)).token);
  client.send({ type: 'connect', data: { metadata: null } });
  await client.next('connected');
}

test('rooms with people in them can be watched, not those with seats alone', async () => {
  await page.api.createRoom({ roomId: 'empty' });
  await page.api.addPeer('empty');
  await page.api.createRoom({ roomId: 'kitchen' });
  await connect('kitchen');
  await page.show(<Watch />);
  await page.shows('1 person');
  expect(page.text).not.toContain('empty');
  expect(page.find<HTMLAnchorElement>('kitchen').hash).toBe('#watch=kitchen');
});

test('a room without a stream is watched live, whatever its codec', async () => {
  class EmptyStream extends MediaStream {
    override getTracks(): [] {
      return [];
    }
  }
  page.install({ RTCPeerConnection: TestConnection, MediaStream: EmptyStream });
  await page.api.createRoom({ roomId: 'any-codec' });
  await page.until('the room is listed', () => page.live.view().rooms?.some(({ id }) => id === 'any-codec') === true);
  await page.show(<Watch roomId="any-codec" />);
  await page.shows('the person who speaks, live');
  expect(page.find<HTMLInputElement>('Live (WHEP)').checked).toBe(true);
});
