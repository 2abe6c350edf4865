// The page's call with a real node and the client of the published SDK. Pictures are covered by the end-to-end tests.
import { startTestNode, type TestNode } from '@bloom/app-bloom/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { TestConnection, TestDevices } from '@bloom/react/testing';
import { TestPage } from '../testing/page.js';
import { CallPage } from './call-page.js';

let node: TestNode;
let page: TestPage;
let devices: TestDevices;
beforeAll(async () => {
  node = await startTestNode();
});
afterAll(() => node.dispose());
beforeEach(async () => {
  devices = new TestDevices();
  page = await TestPage.open(node.url, { token: node.settings.http.apiToken });
  page.install({ RTCPeerConnection: TestConnection, navigator: { mediaDevices: devices } });
});
afterEach(async () => {
  await page.close();
  const { body } = await node.request('GET', '/room');
  for (const { id } of body.data) await node.request('DELETE', `/room/${id}`);
});

async function join(roomId: string): Promise<void> {
  await page.show(<CallPage invited={roomId} />);
  await page.fill('Your name', 'Ann');
  await page.click('Join');
  await page.shows('In the room');
}

/** Another person in the room. */
async function visitor(roomId: string, metadata: unknown) {
  const { id, token } = await node.addPeer(roomId);
  const client = await node.peerSocket();
  await client.authenticate(token);
  client.send({ type: 'connect', data: { metadata } });
  await client.next('connected');
  return { id, client };
}

const peers = async (roomId: string) => (await page.api.getRoom(roomId)).peers;
const news = (): string | null | undefined => document.querySelector('[aria-live]')?.textContent;

test('opens the room of an invitation, and gives the seat back on leaving the call', async () => {
  await join('invited');
  const [peer] = await peers('invited');
  expect(peer?.metadata).toEqual({ name: 'Ann' });
  expect((await page.api.getRoom('invited')).config.peerlessPurgeTimeout).toBe(300);
  expect(location.hash).toBe('#room=invited');
  expect(page.text).toContain('only you');
  const used = [...devices.opened];
  await page.click('Leave');
  await page.shows('Your name');
  await page.until('the seat is free', async () => (await peers('invited')).length === 0);
  expect(used.every(({ readyState }) => readyState === 'ended')).toBe(true);
});

test('gives its seat back when the page is closed', async () => {
  await join('closed');
  window.dispatchEvent(new window.Event('pagehide'));
  await page.until('the seat is free', async () => (await peers('closed')).length === 0);
});

test('names people who come and go, but not those who were already there', async () => {
  await page.api.createRoom({ roomId: 'talk' });
  await visitor('talk', { name: 'Bob' });
  await join('talk');
  await page.shows('2 people');
  expect(news()).toBe('');
  const carl = await visitor('talk', { name: 'Carl' });
  await page.shows('Carl joined');
  await page.shows('3 people');
  carl.client.socket.terminate();
  await page.api.deletePeer('talk', carl.id);
  await page.shows('Carl left');
});

test('closes and reopens the devices on muting and unmuting', async () => {
  await join('muted');
  expect(devices.live).toEqual(['audio default', 'video default']);
  await page.click('Mute');
  await page.shows('Unmute');
  expect(devices.live).toEqual(['video default']);
  await page.click('Stop picture');
  await page.shows('Start picture');
  expect(devices.live).toEqual([]);
  await page.click('Unmute');
  await page.click('Start picture');
  await page.until('both are open again', () => devices.live.length === 2);
});

test('sends the others the microphone that was chosen while muted', async () => {
  await join('chosen');
  await page.click('Mute');
  await page.shows('Unmute');
  await page.click('Devices');
  await page.until('the devices are listed', () => page.text.includes('back'));
  await page.fill('Microphone', 'back');
  await page.until('it is open', () => devices.live.includes('audio back'));
  expect(devices.live).toEqual(['audio back', 'video default']);
  await page.shows('Mute');
});

test('closes a device that is allowed too late for the call', async () => {
  await join('late');
  await page.click('Stop picture');
  await page.shows('Start picture');
  const { isAsked, allow } = devices.hold();
  await page.click('Start picture');
  await page.until('the camera is asked for', isAsked);
  await page.click('Leave');
  await page.shows('Your name');
  allow();
  // The third is the camera of the call, and the lobby shows a preview again.
  await page.until('all were opened', () => devices.opened.length === 5);
  await page.until('only the preview is open', () => devices.live.length === 2);
});

test('a camera that is allowed after the person has left the lobby is closed', async () => {
  const { isAsked, allow } = devices.hold();
  await page.show(<CallPage invited="elsewhere" />);
  await page.until('the camera is asked for', isAsked);
  expect(page.find('Join').getAttribute('aria-disabled')).toBe('true');
  await page.show(<p>Another view</p>);
  await page.shows('Another view');
  allow();
  await page.until('the camera was opened', () => devices.opened.length > 0);
  await page.until('no device is open', () => devices.live.length === 0);
});

test('a person who leaves for another view while joining joins no call', async () => {
  await page.show(<CallPage invited="elsewhere" />);
  await page.click('Join');
  await page.show(<p>Another view</p>);
  await page.until('the room is there', async () => (await page.api.listRooms()).length > 0);
  await page.until('the seat is free', async () => (await peers('elsewhere')).length === 0);
  expect(devices.live).toEqual([]);
});

test('the preview shows the chosen devices, and a microphone muted there is muted in the call', async () => {
  await page.show(<CallPage invited="muted-before" />);
  // Before, the choice between camera and generated picture is what begins with “Camera”.
  await page.until('the devices are listed', () => page.text.includes('back'));
  await page.fill('Camera', 'back');
  await page.until('it is open', () => devices.live.includes('video back'));
  await page.click('Mute');
  await page.until('it is closed', () => devices.live.length === 1);
  await page.click('Join');
  await page.shows('In the room');
  await page.shows('Unmute');
  expect(devices.live).toEqual(['video back']);
  await page.click('Unmute');
  await page.until('it is open', () => devices.live.includes('audio default'));
});

test('a removed person reads the reason in the lobby', async () => {
  await join('removed');
  const used = [...devices.opened];
  const [peer] = await peers('removed');
  await page.api.deletePeer('removed', peer?.id ?? '', 'Out of turn');
  await page.shows('You are no longer in the room. Removed from the room: Out of turn.');
  await page.shows('Your name');
  expect(used.every(({ readyState }) => readyState === 'ended')).toBe(true);
});

test('a full room is reported as full, and the preview continues', async () => {
  await page.api.createRoom({ roomId: 'full', maxPeers: 1 });
  await page.api.addPeer('full');
  await page.show(<CallPage invited="full" />);
  await page.click('Join');
  await page.shows('The room is full');
  expect(devices.live).toEqual(['audio default', 'video default']);
});

test('stops sharing the screen with the button that shares it', async () => {
  await join('screens');
  await page.click('Share screen');
  await page.shows('You share a screen');
  expect(devices.live).toContain('video screen');
  await page.click('Stop sharing');
  await page.shows('You no longer share a screen');
  expect(devices.live).not.toContain('video screen');
});

test('shares nothing when the screen picker is cancelled, and shows a dismissible notice', async () => {
  await join('unshared');
  devices.answer = () => Promise.reject(new DOMException('', 'NotAllowedError'));
  await page.click('Share screen');
  await page.shows('No screen is shared');
  await page.click('Dismiss');
  await page.hides('No screen is shared');
});

test('says why a call is not recorded on a server without storage', async () => {
  await join('unrecorded');
  await page.click('Record');
  await page.shows('There is no storage for recordings');
  await page.shows('Record');
});

test('shows the invite link if the browser has no clipboard', async () => {
  await join('linked');
  await page.click('Copy invite link');
  await page.shows(`here it is: ${node.url}/#invitation=`);
});

test('the lobby lists rooms with the people who are connected, and preselects one with free places', async () => {
  await page.api.createRoom({ roomId: 'empty' });
  await page.api.createRoom({ roomId: 'full', maxPeers: 1, videoCodec: 'h264' });
  await page.api.createRoom({ roomId: 'lively' });
  await page.api.createRoom({ roomId: 'ghosts' });
  for (const roomId of ['ghosts', 'ghosts', 'ghosts']) await page.api.addPeer(roomId);
  for (const roomId of ['full', 'lively', 'lively']) await visitor(roomId, null);
  await page.show(<CallPage />);
  await page.shows('full1 person, at most 1, H264');
  await page.shows('lively2 people');
  await page.shows('emptyempty');
  await page.shows('ghostsempty');
  await page.click('Join');
  await page.shows('In the room');
  expect(location.hash).toBe('#room=lively');
});

test('gives a new room the name that was entered, or a random one', async () => {
  await page.show(<CallPage />);
  await page.shows('A new room');
  await page.fill('Name of the new room', ' standup ');
  await page.click('Join');
  await page.shows('In the room');
  expect(location.hash).toBe('#room=standup');
  await page.click('Leave');
  await page.click('A new room');
  await page.fill('Name of the new room', '');
  await page.click('Join');
  await page.shows('In the room');
  expect(location.hash).toMatch(/^#room=[a-z0-9]{8}$/);
});

test("remembers the person's name while the tab is open", async () => {
  await join('remembered');
  await page.click('Leave');
  await page.shows('Your name');
  expect(page.find<HTMLInputElement>('Your name').value).toBe('Ann');
});
