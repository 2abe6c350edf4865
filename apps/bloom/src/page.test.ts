import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import express from 'express';
import { pageFiles } from './page.js';

let folder: string;
let server: Server;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bloom-page-'));
  await writeFile(join(folder, 'index.html'), 'dashboard');
  await writeFile(join(folder, 'guests.html'), 'guests');
});

afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

async function serve(shown: true | 'guests'): Promise<void> {
  const app = express();
  app.use(pageFiles(shown, folder)!);
  app.use((_request, response) => void response.status(404).end('not found'));
  server = createServer(app);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
}

/** Sends the target of a request unchanged. */
function fetchTarget(target: string): Promise<string> {
  const { port } = server.address() as AddressInfo;

  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({ host: '127.0.0.1', port, path: target }, (response) => resolve(text(response)));
    outgoing.on('error', reject);
    outgoing.end();
  });
}

describe('the page for guests', () => {
  beforeEach(() => serve('guests'));

  test.each(['/', '/guests.html', 'http://host/'])('is served at %s', async (target) => {
    expect(await fetchTarget(target)).toBe('guests');
  });

  test.each([
    '/index.html',
    '/index.html?x',
    '/%69ndex.html',
    '/x/../index.html',
    '//index.html',
    '/INDEX.html',
    'http://host/index.html',
    'http://host/x/../index.html?x',
    '/index.html#x',
    '/index.html%23x',
  ])('is served without the dashboard at %s', async (target) => {
    expect(await fetchTarget(target)).toBe('not found');
  });
});

test('serves the dashboard at its own name and at /', async () => {
  await serve(true);
  expect(await fetchTarget('/')).toBe('dashboard');
  expect(await fetchTarget('/index.html')).toBe('dashboard');
  expect(await fetchTarget('http://host/guests.html')).toBe('not found');
});
