import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from '@jest/globals';
import { root } from '../setup.mjs';

const FOLDERS = ['.', 'docs/guide', 'docs/reference', 'docs/decisions'];
/** Example paths of files that do not exist. */
const EXAMPLES = /^packages\/(?:components\/src\/meter\/|rtp\/src\/payload-formats\/pcmu\.)/;

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

test.each(pages)('%s links to pages, headings and files that exist', (page) => {
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

test('the index of the decisions lists each of them', () => {
  const index = readFileSync(join(root, 'docs/decisions/README.md'), 'utf8');
  for (const name of readdirSync(join(root, 'docs/decisions')))
    if (name !== 'README.md') expect(index).toContain(`(${name})`);
});
