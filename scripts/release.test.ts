/** Tests the workflow that publishes a release, as far as that is possible without publishing one. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { root } from './setup.mjs';

interface Step {
  uses?: string;
  run?: string;
}
interface Job {
  needs?: string;
  environment?: string;
  permissions?: Record<string, string>;
  steps: Step[];
}

const read = (...path: string[]): string => readFileSync(join(root, ...path), 'utf8');
const workflow = parse(read('.github/workflows/release.yml')) as { on: object; jobs: Record<string, Job> };
const jobs = Object.entries(workflow.jobs);
const commands = jobs.flatMap(([, { steps }]) => steps.flatMap(({ run = '' }) => run));

test('publishes all packages that are not private, each after those it depends on', () => {
  const manifests = readdirSync(join(root, 'packages')).map((name) =>
    JSON.parse(read('packages', name, 'package.json')),
  );
  const open = manifests.filter((manifest) => manifest.private !== true);
  const names = /for name in ([\w -]+);/.exec(commands.join('\n'))?.[1]?.split(' ') ?? [];
  expect(names.map((name) => `@bloom/${name}`).toSorted()).toEqual(open.map(({ name }) => name).toSorted());
  for (const { name, dependencies = {} } of open) {
    for (const dependency of Object.keys(dependencies).filter((one) => one.startsWith('@bloom/')))
      expect(names.indexOf(dependency.slice(7))).toBeLessThan(names.indexOf(name.slice(7)));
  }
});

test('publishes only for a tag, after the checks and a confirmation', () => {
  expect(workflow.on).toEqual({ push: { tags: ['v*'] } });
  for (const [name, { needs, environment }] of jobs.filter(([one]) => one !== 'check')) {
    expect([name, needs, environment]).toEqual([name, 'check', 'release']);
  }
});

test('uses no stored secret, and grants each job only what it publishes with', () => {
  expect(read('.github/workflows/release.yml')).not.toContain('secrets.');
  expect(jobs.map(([name, { permissions = {} }]) => [name, permissions])).toEqual([
    ['check', {}],
    ['packages', { contents: 'read', 'id-token': 'write' }],
    ['images', { contents: 'read', packages: 'write' }],
  ]);
});

test('names the actions of others by commit, which nobody can move', () => {
  const uses = jobs.flatMap(([, { steps }]) => steps.flatMap((step) => step.uses ?? []));
  expect(uses.filter((one) => !/@[0-9a-f]{40}$/.test(one))).toEqual([]);
});

test('names one address of the sources in packages, images and chart', () => {
  const address = JSON.parse(read('package.json')).repository.url.replace(/^git\+|\.git$/g, '');
  expect(read('Dockerfile')).toContain(`org.opencontainers.image.source="${address}"`);
  expect(parse(read('deploy/helm/bloom/Chart.yaml')).sources).toEqual([address]);
});

test('runs only scripts that package.json has', () => {
  const { scripts } = JSON.parse(read('package.json'));
  const used = commands.flatMap((text) => [...text.matchAll(/npm run ([\w:-]+)/g)].map(([, name]) => name));
  expect(used.filter((name) => !(String(name) in scripts))).toEqual([]);
});
