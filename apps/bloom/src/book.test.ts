import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import express from 'express';
import { bookFiles } from './book.js';
import { startTestNode } from './testing/test-node.js';

const parent = mkdtempSync(join(tmpdir(), 'bloom-book-'));
const folder = join(parent, 'book');
const SECRET = 'not a page';
let server: Server;

beforeAll(async () => {
  mkdirSync(join(folder, 'guide'), { recursive: true });
  writeFileSync(join(folder, 'index.html'), '<h1>Bloom</h1>');
  writeFileSync(join(folder, 'guide', 'whip.html'), '<h1>WHIP</h1>');
  writeFileSync(join(folder, '.hidden'), SECRET);
  writeFileSync(join(parent, 'secret.txt'), SECRET);
  server = await serve(folder);
});
afterAll(() => {
  server.close();
  rmSync(parent, { recursive: true, force: true });
});

async function serve(path: string): Promise<Server> {
  const app = express();
  app.use(bookFiles((_request, response) => response.writeHead(404).end('other'), path));
  const listening = createServer(app);
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));

  return listening;
}

interface Answer {
  status: number | undefined;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Sends the path as is: `fetch` would remove its dot segments. */
async function ask(path: string, { method = 'GET', headers = {}, of = server } = {}): Promise<Answer> {
  const { port } = of.address() as AddressInfo;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, method, headers, agent: false }, resolve).on('error', reject).end();
  });

  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

describe('the book', () => {
  test('serves its first page at /book/', async () => {
    const { status, body } = await ask('/book/');
    expect(status).toBe(200);
    expect(body).toContain('Bloom');
  });

  test('redirects /book to /book/, on whatever path a proxy serves the node', async () => {
    const { status, headers } = await ask('/book');
    expect(status).toBe(302);
    expect(headers.location).toBe('book/');
  });

  test('runs no inline scripts and cannot be framed', async () => {
    const policy = (await ask('/book/guide/whip.html')).headers['content-security-policy'];
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
  });

  test('is revalidated each time, and sent only after a change', async () => {
    const first = await ask('/book/guide/whip.html');
    expect(first.headers['cache-control']).toBe('no-cache');
    const again = await ask('/book/guide/whip.html', { headers: { 'if-none-match': String(first.headers.etag) } });
    expect(again.status).toBe(304);
  });

  test.each([
    '/book/../secret.txt',
    '/book/guide/../../secret.txt',
    '/book/%2e%2e/secret.txt',
    '/book/..%2fsecret.txt',
    '/book/..%5csecret.txt',
    '/book/%252e%252e/secret.txt',
    '/book//../secret.txt',
    '/book/.hidden',
    '/book/%2ehidden',
    '/book/secret.txt%00.html',
    '/book/%',
    '/book/%c0%ae%c0%ae/secret.txt',
    '/book/guide',
    '/book/guide/',
    '/Book/',
    '/bookmarks',
    'http://x/book/../secret.txt',
    'http://x/book/.hidden',
  ])('serves no other file and no folder at %s', async (path) => {
    const { status, body } = await ask(path);
    expect(status).toBe(404);
    expect(body).toBe('other');
  });

  test('answers a path that is longer than any file name', async () => {
    expect((await ask(`/book/${'a'.repeat(10_000)}`)).status).toBe(404);
    expect((await ask(`/book/${'a/'.repeat(5_000)}`)).status).toBe(404);
  });

  test.each(['POST', 'PUT', 'DELETE', 'PATCH'])('leaves %s to the API', async (method) => {
    expect((await ask('/book/', { method })).body).toBe('other');
  });

  test('says how to build it if it has not been built', async () => {
    const empty = await serve(join(parent, 'nowhere'));
    const { status, body } = await ask('/book/', { of: empty });
    empty.close();
    expect(status).toBe(404);
    expect(body).toContain('npm run book');
  });

  test('is served beside the dashboard only', async () => {
    const [without, beside] = await Promise.all([startTestNode(), startTestNode({ JF_DASHBOARD: 'true' })]);
    const [hidden, shown] = await Promise.all([
      fetch(`${without.url}/book`),
      fetch(`${beside.url}/book`, { redirect: 'manual' }),
    ]);
    await Promise.all([without.dispose(), beside.dispose()]);
    expect(hidden.status).toBe(404);
    expect(shown.status).toBe(302);
  });
});
