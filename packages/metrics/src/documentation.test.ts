import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { Metrics } from './metrics.js';

function read(path: string): string {
  return readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
}

/** Returns the names of all series served once every event has occurred, without the parts of histograms. */
async function servedNames(): Promise<Set<string>> {
  const metrics = new Metrics({ tickSeconds: 10 });
  metrics.observeProcess();
  metrics.roomCreated('r');
  metrics.nodeUp('n');
  metrics.roomPlaced('n');
  metrics.reservationRefused('n');
  metrics.quality.httpRoute('r')(1);
  metrics.quality.componentCrashed('hls');
  metrics.quality.buildInfo({ version: '1', commit: 'dev' });
  metrics.quality.peer({ lossIn: 0, lossOut: 0 });
  metrics.quality.codecTracks({ in: { vp8: 1 }, out: { vp8: 1 }, reduced: { vp8: { pictures: 1, size: 0 } } });
  metrics.quality.dataMessages('in', 1);
  metrics.quality.mediaDropped('malformed', 1);
  metrics.quality.packetsCrossed(1);
  metrics.quality.figures({
    workersBusy: [0],
    workerRestarts: 0,
    webhookBacklog: 0,
    longestMailbox: 0,
    disk: { freeBytes: 1, sizeBytes: 2 },
  });
  const lines = (await metrics.expose()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));

  return new Set(lines.map((line) => nameOf(/^\w+/.exec(line)?.[0] ?? '')));
}

const NAMES = /\b(?:bloom|process|nodejs)_[a-z0-9_]+/g;
const DASHBOARDS = ['overview', 'room', 'node'];
const HISTOGRAM_PARTS = /(?<=^bloom_(?:peer|http|join|media).*)_(?:bucket|count|sum)$/;

/** Maps `bloom_join_seconds_bucket` and `bloom_join_seconds_count` to the same series. */
function nameOf(series: string): string {
  return series.replace(HISTOGRAM_PARTS, '');
}

function expressionsOf(dashboard: string): string[] {
  const { panels } = JSON.parse(read(`deploy/grafana/${dashboard}.json`)) as {
    panels: { targets: { expr: string }[] }[];
  };

  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
}

test('uses in the Grafana dashboards only series that are served, and all of ours', async () => {
  const served = await servedNames();
  const used = new Set(DASHBOARDS.flatMap(expressionsOf).flatMap((expr) => (expr.match(NAMES) ?? []).map(nameOf)));

  expect([...used].filter((name) => !served.has(name))).toEqual([]);
  expect([...served].filter((name) => name.startsWith('bloom_') && !used.has(name))).toEqual([]);
});

test('uses in the alerts only series that are served, each with its runbook page', async () => {
  const served = await servedNames();
  const rules = read('deploy/prometheus/alerts.yml');
  const pages = [...rules.matchAll(/runbook: (\S+)/g)].map(([, page = '']) => page);
  const used = (rules.match(NAMES) ?? []).map(nameOf);

  expect(used.filter((name) => !served.has(name))).toEqual([]);
  expect(rules.match(/- alert:/g)).toHaveLength(pages.length);
  expect(pages.filter((page) => !existsSync(new URL(`../../../${page}`, import.meta.url)))).toEqual([]);
  const written = readdirSync(new URL('../../../docs/runbooks', import.meta.url)).filter(
    (name) => name !== 'README.md',
  );
  expect(written.map((name) => `docs/runbooks/${name}`).toSorted()).toEqual(pages.toSorted());
});

const promtool = spawnSync('promtool', ['--version']).status === 0;
(promtool ? test : test.skip)('each alert fires on its own condition and on nothing else [needs promtool]', () => {
  const cwd = fileURLToPath(new URL('../../../deploy/prometheus', import.meta.url));
  for (const command of [
    ['check', 'rules', 'alerts.yml'],
    ['test', 'rules', 'alerts.test.yml'],
  ]) {
    const { status, stdout, stderr } = spawnSync('promtool', command, { cwd, encoding: 'utf8' });
    expect(`${stdout}${stderr}`).toContain('SUCCESS');
    expect(status).toBe(0);
  }
});

test('lists all of our served series and no other in docs/reference/metrics.md', async () => {
  const rows = read('docs/reference/metrics.md').matchAll(/^\| `(bloom_\w+)` \| (\w+) \|/gm);
  const documented = [...rows].map(([, name, type]) => `${name} ${type}`);
  const text = await new Metrics({ tickSeconds: 10 }).expose();
  const served = [...text.matchAll(/^# TYPE (bloom_\w+) (\w+)$/gm)].map(([, name, type]) => `${name} ${type}`);

  expect(documented.toSorted()).toEqual(served.toSorted());
});
