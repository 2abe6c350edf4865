import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { Metrics } from './metrics.js';

function read(path: string): string {
  return readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
}

/** Names of the series that the endpoint serves once everything has happened. */
async function servedNames(): Promise<Set<string>> {
  const metrics = new Metrics({ tickSeconds: 10 });
  metrics.roomCreated('r');
  metrics.nodeUp('n');
  metrics.roomPlaced('n');
  metrics.reservationRefused('n');
  const lines = (await metrics.expose()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));

  return new Set(lines.map((line) => /^\w+/.exec(line)?.[0] ?? ''));
}

const NAMES = /\b(?:bloom|process|nodejs)_[a-z0-9_]+/g;

test('the dashboard for Grafana uses series that are served, and all of ours', async () => {
  const served = await servedNames();
  const { panels } = JSON.parse(read('deploy/grafana/overview.json')) as { panels: { targets: { expr: string }[] }[] };
  const used = new Set(panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => expr.match(NAMES) ?? [])));

  expect([...used].filter((name) => !served.has(name))).toEqual([]);
  expect([...served].filter((name) => name.startsWith('bloom_') && !used.has(name))).toEqual([]);
});

test('docs/reference/metrics.md lists the series that are served, all of ours and no other', async () => {
  const rows = read('docs/reference/metrics.md').matchAll(/^\| `(bloom_\w+)` \| (\w+) \|/gm);
  const documented = [...rows].map(([, name, type]) => `${name} ${type}`);
  const text = await new Metrics({ tickSeconds: 10, processMetrics: false }).expose();
  const served = [...text.matchAll(/^# TYPE (bloom_\w+) (\w+)$/gm)].map(([, name, type]) => `${name} ${type}`);

  expect(documented.toSorted()).toEqual(served.toSorted());
});
