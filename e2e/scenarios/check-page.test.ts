// The page that tells people whether a call would work, in a real browser: devices, and each way to the server.
import { spawnSync } from 'node:child_process';
import { freeTcpPort, freeUdpRange } from '@bloom/net/testing';
import { expect, test } from '@jest/globals';
import { axeFindings } from '../harness/axe.js';
import { describeWith, testWith } from '../harness/needs.js';
import { check, invitationOf, launch, press, start, undo } from './checking.js';

describeWith(['chromium'], 'The check page', () => {
  test('finds everything in order, shows it accessibly at each size, and lets it be copied', async () => {
    const node = await start({ JF_WEBRTC_TURN_TCP_PORT: String(await freeTcpPort()) });
    const token = await invitationOf(node);
    const browser = await launch();
    const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
    const page = await context.newPage();
    await page.goto(`${node.url}/#/check&invitation=${token}`);
    const text = await check(page);
    expect(text).toMatch(/Calls work from this network\.$/m);
    expect(text).toMatch(/^ok {3}Camera: fake_device_0, \d+ x \d+\.$/m);
    expect(text).toMatch(/^ok {3}Microphone: /m);
    expect(text).toMatch(/^ok {3}Loudspeaker: /m);
    expect(text).toMatch(/^ok {3}UDP: .* \(\d+ ms\)$/m);
    expect(text).toMatch(/^ok {3}TCP: .* \(\d+ ms\)$/m);
    expect(text).toMatch(/^- {4}TLS: This server does not offer TLS/m);
    expect(text).not.toContain(token);
    await press(page, 'Copy the result');
    await page.getByText('Copied.').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(text);
    const found: string[] = [];
    for (const width of [1_280, 375]) {
      await page.setViewportSize({ width, height: 800 });
      for (const finding of await axeFindings(page)) found.push(`${width}: ${finding}`);
      const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(tooWide).toBeLessThanOrEqual(0);
    }
    expect(found).toEqual([]);
  });

  testWith(['iptables'], 'says within seconds what to ask for where UDP does not pass, and that TCP does', async () => {
    const { first, last } = await freeUdpRange(4);
    const node = await start({
      JF_WEBRTC_TURN_PORT_RANGE: `${first}-${last}`,
      JF_WEBRTC_TURN_TCP_PORT: String(await freeTcpPort()),
    });
    const rule = ['INPUT', '-p', 'udp', '--dport', `${first}:${last}`, '-j', 'DROP'];
    expect(spawnSync('iptables', ['-A', ...rule], { encoding: 'utf8' })).toMatchObject({ status: 0 });
    undo.push(() => spawnSync('iptables', ['-D', ...rule]));
    const page = await (await launch()).newPage();
    await page.goto(`${node.url}/#/check&invitation=${await invitationOf(node)}`);
    const startedAt = performance.now();
    const text = await check(page);
    expect(performance.now() - startedAt).toBeLessThan(13_000);
    expect(text).toMatch(/^Calls work from this network over TCP/m);
    expect(text).toMatch(/^FAIL UDP: No packets pass over UDP.*, to 127\.0\.0\.1, port \d+\.$/m);
    expect(text).toMatch(/Ask the administrator of the network to let UDP pass to 127\.0\.0\.1, port \d+/);
    expect(await axeFindings(page)).toEqual([]);
  });
});
