import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { pageSources, projects, root, withCommit } from './setup.mjs';

test('builds a checkout completely', () => {
  const all = projects(root);
  expect(all).toEqual(expect.arrayContaining(['apps/bloom', 'apps/bloomctl', 'apps/bench']));
  for (const path of all) expect(existsSync(join(root, path, 'tsconfig.json'))).toBe(true);
});

test('builds an image from the files that .dockerignore allows', () => {
  const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').trim().split('\n');
  const context = mkdtempSync(join(tmpdir(), 'bloom-context-'));
  try {
    cpSync(join(root, 'tsconfig.json'), join(context, 'tsconfig.json'));
    for (const path of projects(root)) {
      if (!ignored.includes(path)) mkdirSync(join(context, path), { recursive: true });
    }
    expect(projects(context)).toEqual(projects(root).filter((path: string) => path !== 'apps/bench'));
  } finally {
    rmSync(context, { recursive: true, force: true });
  }
});

test('rebuilds the page after a change in it or in a package that it contains', () => {
  const checkout = mkdtempSync(join(tmpdir(), 'bloom-page-'));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(checkout, path)), { recursive: true });
    writeFileSync(join(checkout, path), text);
  };
  try {
    write('apps/dashboard/package.json', JSON.stringify({ devDependencies: { '@bloom/client': '0.1.0', vite: '8' } }));
    write('packages/client/src/client.ts', 'export {};');
    const before = pageSources(checkout);
    write('apps/dashboard/dist/index.html', 'built');
    write('packages/client/dist/index.js', 'built');
    expect(pageSources(checkout)).toBe(before);
    write('packages/client/src/client.ts', 'export const changed = true;');
    const changed = pageSources(checkout);
    expect(changed).not.toBe(before);
    write('apps/dashboard/src/app.tsx', 'export {};');
    expect(pageSources(checkout)).not.toBe(changed);
  } finally {
    rmSync(checkout, { recursive: true, force: true });
  }
});

test('announces the first compilation, which is silent for long', () => {
  const checkout = mkdtempSync(join(tmpdir(), 'bloom-first-'));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(checkout, path)), { recursive: true });
    writeFileSync(join(checkout, path), text);
  };
  const setUp = (): string =>
    execFileSync(process.execPath, [join(checkout, 'scripts/setup.mjs')], { encoding: 'utf8' });
  try {
    cpSync(join(root, 'scripts/setup.mjs'), join(checkout, 'scripts/setup.mjs'));
    write('package-lock.json', '');
    write('node_modules/.bloom-installed', createHash('sha256').digest('hex'));
    write('tsconfig.json', JSON.stringify({ references: [] }));
    const silent = ['bloomctl', 'sdks', 'docs-page', 'node'].map((name) => `scripts/build/bundle-${name}.mjs`);
    for (const program of ['node_modules/typescript/bin/tsc', ...silent]) write(program, '');
    expect(setUp()).toBe('Compiling (once, about a minute) ...\n');
    mkdirSync(join(checkout, 'apps/bloom/dist'), { recursive: true });
    expect(setUp()).toBe('');
  } finally {
    rmSync(checkout, { recursive: true, force: true });
  }
});

describe('the commit that a node reports', () => {
  let checkout: string;
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: checkout, encoding: 'utf8' });
  beforeEach(() => void (checkout = mkdtempSync(join(tmpdir(), 'bloom-commit-'))));
  afterEach(() => rmSync(checkout, { recursive: true, force: true }));

  test('is the one of the checkout, and tells whether files have changed since', () => {
    git('init', '-q');
    writeFileSync(join(checkout, 'file'), 'a');
    git('add', '.');
    git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 'first');
    const commit = git('rev-parse', '--short', 'HEAD').trim();
    expect(withCommit({}, checkout)).toEqual({ JF_GIT_COMMIT: commit });
    writeFileSync(join(checkout, 'file'), 'b');
    expect(withCommit({}, checkout)).toEqual({ JF_GIT_COMMIT: `${commit}-dirty` });
  });

  test('is the one of the environment where that names one', () => {
    expect(withCommit({ JF_GIT_COMMIT: 'abc1234' }, root)).toEqual({ JF_GIT_COMMIT: 'abc1234' });
  });

  test('is none outside a checkout', () => {
    expect(withCommit({}, checkout)).toEqual({});
  });
});

test('names every package on the architecture page', () => {
  const page = readFileSync(join(root, 'docs', 'reference', 'architecture.md'), 'utf8');
  for (const name of readdirSync(join(root, 'packages'))) expect(page).toContain(`| \`${name}\` |`);
  for (const name of readdirSync(join(root, 'apps'))) expect(page).toContain(`| \`apps/${name}\` |`);
});

test('installs werift once, although node-av would bring an older one', () => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  expect(Object.keys(packages).filter((path) => path.endsWith('/werift'))).toEqual(['node_modules/werift']);
});

test('runs no script of a package when it is installed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-install-'));
  try {
    mkdirSync(join(folder, 'package'));
    const manifest = { name: 'hijacked', version: '1.0.0', scripts: { postinstall: 'echo ran > ../../ran' } };
    writeFileSync(join(folder, 'package', 'package.json'), JSON.stringify(manifest));
    cpSync(join(root, '.npmrc'), join(folder, '.npmrc'));
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'checkout', private: true }));
    execFileSync('npm', ['pack', './package', '--silent'], { cwd: folder });
    execFileSync('npm', ['install', './hijacked-1.0.0.tgz', '--offline', '--silent'], { cwd: folder });
    expect(existsSync(join(folder, 'node_modules', 'hijacked'))).toBe(true);
    expect(existsSync(join(folder, 'ran'))).toBe(false);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
