// Everybody who may open the check page: guests, operators, people without permission for devices, users of Firefox.
import { freeTcpPort } from '@bloom/net/testing';
import { expect, test } from '@jest/globals';
import { axeFindings } from '../harness/axe.js';
import { launchChromium } from '../harness/chromium.js';
import { Firefox } from '../harness/firefox.js';
import { describeWith } from '../harness/needs.js';
import { check, invitationOf, launch, press, start, undo } from './checking.js';

describeWith(['chromium'], 'The check page', () => {
  test('serves the page beside the one for guests, and asks for an invitation that the address does not have', async () => {
    const node = await start({ JF_DASHBOARD: 'guests' });
    const link = `${node.url}/#invitation=${await invitationOf(node)}`;
    const page = await (await launch()).newPage();
    await page.goto(`${node.url}/#/check`);
    await page.getByLabel('Invitation').fill('not an invitation');
    await press(page, 'Start the check');
    await page.getByText('The invitation is not valid').waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByLabel('Invitation').fill(link);
    expect(await check(page)).toMatch(/^ok {3}UDP: /m);
  });

  test('opens the page to an operator who has signed in', async () => {
    const node = await start();
    const page = await (await launch()).newPage();
    await page.goto(`${node.url}/`);
    await page.getByRole('link', { name: 'Check' }).click();
    expect(await check(page)).toMatch(/^ok {3}UDP: /m);
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole('link', { name: 'Back to the dashboard' }).click();
    await page.getByRole('heading', { name: 'Rooms' }).waitFor();
  });

  test('says how to get devices that the browser may not use', async () => {
    const node = await start();
    const browser = await launchChromium(['--deny-permission-prompts']);
    undo.push(() => browser.close());
    const page = await browser.newPage();
    await page.goto(`${node.url}/#/check&invitation=${await invitationOf(node)}`);
    const text = await check(page);
    expect(text).toMatch(/^FAIL Camera: (?:None was found|The browser has no permission to use it)\.$/m);
    expect(text).toMatch(/^ok {3}UDP: /m);
  });
});

describeWith(['firefox'], 'The check page in Firefox', () => {
  test('finds the ways to a node of this machine', async () => {
    const node = await start({ JF_WEBRTC_TURN_TCP_PORT: String(await freeTcpPort()) });
    const firefox = await Firefox.start({
      preferences: { 'media.navigator.streams.fake': true, 'media.navigator.permission.disabled': true },
    });
    undo.push(() => firefox.close());
    const page = await firefox.open(`${node.url}/#/check&invitation=${await invitationOf(node)}`);
    const text = await check(page);
    expect(text).toMatch(/^ok {3}UDP: .* \(\d+ ms\)$/m);
    expect(text).toMatch(/^ok {3}TCP: .* \(\d+ ms\)$/m);
    expect(text).toMatch(/^ok {3}Camera: /m);
    expect(await axeFindings(page)).toEqual([]);
  });
});
