// Tests an unrelated web page in the browser of a user who started a node without a token.
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { apiToken, type BloomNode, startNode } from '../harness/bloom-node.js';
import { launchChromium } from '../harness/chromium.js';
import { describeWith } from '../harness/needs.js';

/** Returns the results of the page's calls, as `status` or the browser's error. */
const CALLS = `async ({ node, token }) => {
  const headers = { authorization: 'Bearer ' + token };
  const ask = (method, path, body) =>
    fetch(node + path, { method, headers, body }).then(({ status }) => status, ({ message }) => message);
  const socket = new Promise((done) => {
    const opened = new WebSocket(node.replace('http', 'ws') + '/socket/server/websocket');
    opened.onopen = () => done('open');
    opened.onerror = () => done('refused');
  });
  return {
    rooms: await ask('GET', '/room'),
    room: await ask('POST', '/room'),
    logs: await ask('GET', '/cluster/logs?limit=2'),
    drain: await ask('POST', '/node/drain'),
    socket: await socket,
  };
}`;

describeWith(['chromium'], 'A page on a developer’s machine', () => {
  let node: BloomNode;
  let browser: Browser;
  const pages = createServer((_request, response) => response.setHeader('content-type', 'text/html').end('<p>page'));

  beforeAll(async () => {
    pages.listen(0, '127.0.0.1');
    await once(pages, 'listening');
    node = await startNode();
    browser = await launchChromium(['--host-resolver-rules=MAP *.example 127.0.0.1']);
  });
  afterAll(async () => {
    await browser?.close();
    await node?.stop();
    pages.closeAllConnections();
    pages.close();
  });

  async function callsFrom(origin: string, url = node.url): Promise<unknown> {
    const page: Page = await browser.newPage();
    await page.goto(origin);
    const calls = await page.evaluate(`(${CALLS})(${JSON.stringify({ node: url, token: apiToken })})`);
    await page.close();
    return calls;
  }

  test('gets nothing with the public token if it has another origin', async () => {
    const { port } = pages.address() as AddressInfo;
    expect(await callsFrom(`http://foreign.example:${port}`)).toEqual({
      rooms: 403,
      room: 403,
      logs: 403,
      drain: 403,
      socket: 'refused',
    });
  });

  test('gets nothing either if its own name resolves to this machine', async () => {
    const rebound = node.url.replace('127.0.0.1', 'foreign.example');
    const refused = { rooms: 403, room: 403, logs: 403, drain: 403, socket: 'refused' };
    expect(await callsFrom(`${rebound}/docs`, rebound)).toEqual(refused);
  });

  test('may do everything if it is served from this machine, as in development', async () => {
    const { port } = pages.address() as AddressInfo;
    expect(await callsFrom(`http://localhost:${port}`)).toEqual({
      rooms: 200,
      room: 201,
      logs: 200,
      drain: 200,
      socket: 'open',
    });
  });

  test('is told apart from a backend, because programs send no Origin', async () => {
    const headers = { authorization: `Bearer ${apiToken}` };
    const status = await new Promise((resolve) => {
      get(`${node.url}/room`, { headers }, (response) => resolve(response.resume().statusCode));
    });
    expect(status).toBe(200);
  });
});
