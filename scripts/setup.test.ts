import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { projects, root } from './setup.mjs';

test('a checkout is built whole', () => {
  const all = projects(root);
  expect(all).toEqual(expect.arrayContaining(['apps/bloom', 'apps/bloomctl', 'bench']));
  for (const path of all) expect(existsSync(join(root, path, 'tsconfig.json'))).toBe(true);
});

test('an image is built of what .dockerignore lets through', () => {
  const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').trim().split('\n');
  const context = mkdtempSync(join(tmpdir(), 'bloom-context-'));
  try {
    cpSync(join(root, 'tsconfig.json'), join(context, 'tsconfig.json'));
    for (const path of projects(root)) {
      if (!ignored.includes(path.split('/')[0] ?? path)) mkdirSync(join(context, path), { recursive: true });
    }
    expect(projects(context)).toEqual(projects(root).filter((path: string) => path !== 'bench'));
  } finally {
    rmSync(context, { recursive: true, force: true });
  }
});

test('the page of the architecture names every package', () => {
  const page = readFileSync(join(root, 'docs', 'reference', 'architecture.md'), 'utf8');
  for (const name of readdirSync(join(root, 'packages'))) expect(page).toContain(`| \`${name}\` |`);
  for (const name of readdirSync(join(root, 'apps'))) expect(page).toContain(`| \`apps/${name}\` |`);
});
