// Tests the guest page against a real node, without the API token.
import { startTestNode, type TestNode } from '@bloom/app-bloom/testing';
import { BloomClient } from '@bloom/server-sdk';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { TestConnection, TestDevices } from '@bloom/react/testing';
import { checkIn } from '../check/check-address.js';
import { TestPage } from '../testing/page.js';
import { GuestPage } from './guest-page.js';

let node: TestNode;
let api: BloomClient;
let page: TestPage;
let devices: TestDevices;
beforeAll(async () => {
  node = await startTestNode();
  api = new BloomClient({ url: node.url, token: node.settings.http.apiToken });
});
afterAll(() => node.dispose());
beforeEach(async () => {
  devices = new TestDevices();
  page = await TestPage.open(node.url, { token: 'none of the guest' });
  page.install({ RTCPeerConnection: TestConnection, navigator: { mediaDevices: devices } });
  await api.createRoom({ roomId: 'kitchen' });
});
afterEach(async () => {
  await page.close();
  await api.deleteRoom('kitchen').catch(() => undefined);
});

async function enter(invitation: string): Promise<void> {
  await page.show(<GuestPage key={invitation} base={`${node.url}/`} invitation={invitation} />);
  await page.shows('Join the call');
  await page.fill('Your name', 'Bob');
  await page.click('Join');
}

/** Waits until the guest has joined. */
async function joined(): Promise<void> {
  await page.shows('only you');
  await page.until('the guest has said its name', async () => {
    const [guest] = (await api.getRoom('kitchen')).peers;
    return (guest?.metadata as { peer?: unknown } | undefined)?.peer !== null;
  });
}

test('asks a guest for a name, shows a preview, and then shows the call with nothing else around it', async () => {
  await enter((await api.createInvitation('kitchen')).token);
  await joined();
  const { peers } = await api.getRoom('kitchen');
  expect(peers.map(({ metadata }) => metadata)).toEqual([{ peer: { name: 'Bob' }, server: { name: 'Bob' } }]);
  expect(page.text).not.toContain('Copy invite link');
  expect(page.text).not.toContain('token');
  expect(document.querySelector('nav')).toBeNull();
});

test('leads a guest to the check of the same invitation', async () => {
  const { token } = await api.createInvitation('kitchen');
  await page.show(<GuestPage key={token} base={`${node.url}/`} invitation={token} />);
  await page.shows('Join the call');
  expect(checkIn(page.find('Check devices and network').getAttribute('href') ?? '')?.token).toBe(token);
});

test('shows the entrance again to a guest who leaves, and closes the devices of the call', async () => {
  await enter((await api.createInvitation('kitchen')).token);
  await joined();
  const used = [...devices.opened];
  await page.click('Leave');
  await page.shows('You have left the call');
  await page.until('the devices are closed', () => used.every(({ readyState }) => readyState === 'ended'));
});

test('tells a guest with a wrong link so, and never asks for a token', async () => {
  const { token } = await api.createInvitation('kitchen');
  await enter(`${token}x`);
  await page.shows('The link is not valid');
  expect(page.text).not.toContain('token');
});

test('tells a guest with a used link so', async () => {
  const { token } = await api.createInvitation('kitchen', { uses: 1 });
  await api.acceptInvitation(token);
  await enter(token);
  await page.shows('The link is no longer valid');
});

test('tells a guest who comes after the end of the room so', async () => {
  const { token } = await api.createInvitation('kitchen');
  await api.deleteRoom('kitchen');
  await enter(token);
  await page.shows('The call has ended');
});
