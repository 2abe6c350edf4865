import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from '@jest/globals';
import { root } from '../setup.mjs';

const FOLDERS = [
  '.',
  ...['', 'guide', 'examples', 'reference', 'runbooks', 'decisions'].map((name) => join('docs', name)),
];
/** Example paths of files that do not exist. */
const EXAMPLES = /^packages\/(?:components\/src\/meter\/|rtp\/src\/payload-formats\/g711\.)/;

const pages = FOLDERS.flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => normalize(join(folder, name))),
);

/** Returns the anchors of the headings, as GitHub generates them. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** Returns the pages that a page links to. */
function linksOf(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8');
  const links = [...text.matchAll(/\]\((?!http)([^)\s#]+\.md)/g)].map(([, link = '']) => join(dirname(page), link));

  return links.filter((link) => existsSync(join(root, link)));
}

test.each(pages)('links from %s to pages, headings and files that exist', (page) => {
  const text = readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  const broken: string[] = [];
  for (const [, link = ''] of text.matchAll(/\]\((?!http)([^)\s]+)\)/g)) {
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? join(root, page) : join(root, dirname(page), path);
    if (!existsSync(target)) broken.push(link);
    else if (anchor !== undefined && !anchorsOf(readFileSync(target, 'utf8')).includes(anchor)) broken.push(link);
  }
  for (const [, path = ''] of text.matchAll(/`((?:packages|apps|scripts|e2e)\/[\w./-]+)`/g))
    if (!EXAMPLES.test(path) && !existsSync(join(root, path)) && !/dist|bloomctl\.js/.test(path)) broken.push(path);
  expect(broken).toEqual([]);
});

test.each(pages)('has no table in %s that an empty line splits, because its end would be shown as text', (page) => {
  const text = readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  expect(text.match(/(?<=\n\n)\|.*\n(?!\|[-| :]+\|\n).*/g) ?? []).toEqual([]);
});

test('keeps every page of the book within three links of its first page', () => {
  let reached = ['docs/README.md'];
  for (let clicks = 0; clicks < 3; clicks += 1)
    reached = [...new Set(reached.flatMap((page) => [page, ...linksOf(page)]))];
  expect(pages.filter((page) => page.startsWith('docs/') && !reached.includes(page))).toEqual([]);
});

test('lists each decision in the index of the decisions', () => {
  const index = readFileSync(join(root, 'docs/decisions/README.md'), 'utf8');
  for (const name of readdirSync(join(root, 'docs/decisions')))
    if (name !== 'README.md') expect(index).toContain(`(${name})`);
});
