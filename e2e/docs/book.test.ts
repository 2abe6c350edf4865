// Builds the book and follows its links as a browser without scripts does, from files: no server is involved.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inflateSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { launchChromium } from '../harness/chromium.js';
import { describeWith } from '../harness/needs.js';
import { repository } from '../harness/processes.js';

const writer = join(repository, 'scripts', 'docs', 'api-pages', 'book.mjs');
const folder = mkdtempSync(join(tmpdir(), 'bloom-book-'));
/** The local links and sources of each page: the file, and the anchor in it. */
const links = new Map<string, { file: string; anchor: string }[]>();

beforeAll(() => {
  execFileSync(process.execPath, [writer, `${folder}/`], { encoding: 'utf8', stdio: 'pipe' });
  for (const page of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    if (page.endsWith('.html') && !page.startsWith('media')) links.set(page, linksOf(page));
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function linksOf(page: string): { file: string; anchor: string }[] {
  const found = [...read(page).matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, link = '']) =>
    link.replaceAll('&amp;', '&'),
  );

  return found
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [path = '', anchor = ''] = link.split('#').map(decodeURIComponent);
      return { file: path === '' ? page : join(dirname(page), path), anchor };
    });
}

function read(file: string): string {
  return readFileSync(join(folder, file), 'utf8');
}

test('is not written over files of another kind', () => {
  const other = mkdtempSync(join(tmpdir(), 'bloom-no-book-'));
  writeFileSync(join(other, 'thesis.txt'), '');
  const { status, stderr } = spawnSync(process.execPath, [writer, other], { encoding: 'utf8' });
  expect(stderr).toContain(`${other} has files`);
  expect(status).toBe(1);
  expect(readdirSync(other)).toEqual(['thesis.txt']);
  rmSync(other, { recursive: true });
});

test('leads to a file and to a heading in it with every link', () => {
  const broken: string[] = [];
  for (const [page, targets] of links)
    for (const { file, anchor } of targets) {
      const leads =
        existsSync(join(folder, file)) && (!links.has(file) || anchor === '' || read(file).includes(` id="${anchor}"`));
      if (!leads) broken.push(`${page}: ${file}#${anchor}`);
    }
  expect(broken).toEqual([]);
});

test('keeps every page within three clicks of the first page', () => {
  let reached = ['index.html'];
  for (let clicks = 0; clicks < 3; clicks += 1)
    reached = [...new Set(reached.flatMap((page) => [page, ...(links.get(page) ?? []).map(({ file }) => file)]))];
  const far = [...links.keys()].filter((page) => !reached.includes(page));
  expect(far).toEqual([]);
});

test('has a page for every page of docs', () => {
  const docs = readdirSync(join(repository, 'docs'), { recursive: true, encoding: 'utf8' });
  const missing = docs
    .filter((page) => page.endsWith('.md') && page !== 'README.md' && !page.includes('node_modules'))
    .filter((page) => !links.has(page.replace(/md$/, 'html')));
  expect(missing).toEqual([]);
});

test('finds the headings of guides and the exports of the packages by its search', () => {
  const [, index = ''] = /"([A-Za-z0-9+/=]+)"/.exec(read('assets/search.js')) ?? [];
  const search = inflateSync(Buffer.from(index, 'base64')).toString();
  expect(search).toContain('WHIP and WHEP');
  expect(search).toContain('RoomClient');
});

test('has no inline scripts, which a content security policy would refuse', () => {
  expect([...links.keys()].filter((page) => /<script>|<script [^>]*>[^<]/.test(read(page)))).toEqual([]);
});

test('refers to no other host for its scripts, styles and pictures', () => {
  const foreign = [...links.keys()].filter((page) =>
    /<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?\/\//.test(read(page)),
  );
  expect(foreign).toEqual([]);
});

/** What newcomers look for, with the page that has to be among the first three results. */
function searches(): [string, string][] {
  const questions = readFileSync(join(repository, 'docs', 'README.md'), 'utf8').matchAll(
    /^- \[(.+\?)\]\(([^)#]+)\.md/gm,
  );

  return [
    ...[...questions].map(([, question = '', page = '']): [string, string] => [question, `${page}.html`]),
    ['mute a person', 'guide/people.html'],
    ['recording to s3', 'guide/files-and-recordings.html'],
    ['upgrade without downtime', 'guide/upgrading.html'],
    ['turn over tls', 'guide/getting-started.html'],
    ['JF_WEBRTC_TURN_IP', 'reference/configuration.html'],
    ['createRoom', 'classes/_bloom_server-sdk.BloomClient.html#createroom'],
  ];
}

describeWith(['chromium'], 'the book in Chromium, opened as files', () => {
  test('finds the answers to the questions of newcomers among the first three results', async () => {
    expect(searches().length).toBeGreaterThanOrEqual(16);
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      await page.goto(pathToFileURL(join(folder, 'index.html')).href);
      await page.locator('#tsd-search-trigger').click();
      const results = page.locator('#tsd-search-results a');
      const missed: { words: string; first: (string | null)[] }[] = [];
      for (const [words, answer] of searches()) {
        await page.locator('#tsd-search-input').fill('');
        await results.first().waitFor({ state: 'detached' });
        await page.locator('#tsd-search-input').fill(words);
        await results.first().waitFor();
        const links = await results.evaluateAll((all) => all.map((each) => each.getAttribute('href')));
        const first = links.slice(0, 3);
        if (!first.some((link) => link?.endsWith(answer))) missed.push({ words, first });
      }
      expect(missed).toEqual([]);
    } finally {
      await browser.close();
    }
  });

  test('finds a page by its search, without a server', async () => {
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      const uncaught: string[] = [];
      page.on('pageerror', ({ message }) => uncaught.push(message));
      await page.goto(pathToFileURL(join(folder, 'index.html')).href);
      await page.locator('#tsd-search-trigger').click();
      await page.locator('#tsd-search-input').fill('WHIP and WHEP');
      await page.locator('#tsd-search-results a').filter({ hasText: 'WHIP and WHEP' }).first().click();
      await page.locator('h1').filter({ hasText: 'WHIP and WHEP' }).waitFor();
      expect(uncaught).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
