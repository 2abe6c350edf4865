// The package manager of Kubernetes, which renders the chart that our tests render without it.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import { root } from '../setup.mjs';
import { renderChart } from '../testing/helm.mjs';

const CHART = join(root, 'deploy', 'helm', 'bloom');
/** The oldest Kubernetes would be helm's own choice, which the chart refuses. */
const ARGS = ['template', 'media', CHART, '--namespace', 'calls', '--kube-version', '1.30.0'];

/** Returns values beside the chart's defaults, by what they turn on. */
function cases() {
  const { env, media, tls } = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
  return {
    'its defaults': {},
    'TLS and a monitor': { replicas: 3, podMonitor: true, tls: { ...tls, enabled: true } },
    NodePorts: { media: { ...media, nodePort: { ...media.nodePort, enabled: true, workers: 3 } } },
    'further settings': {
      replicas: 1,
      env: { ...env, JF_LOG_LEVEL: 'debug' },
      tls: { ...tls, enabled: true, annotations: { owner: 'media' } },
    },
  };
}

const nameOf = ({ kind, metadata }) => `${kind}/${metadata.name}`;
const byName = (objects) => Object.fromEntries(objects.map((object) => [nameOf(object), object]));

/** Returns what is wrong with the chart, if anything. */
function compare(values) {
  const sets = Object.entries(values).flatMap(([name, value]) => ['--set-json', `${name}=${JSON.stringify(value)}`]);
  const { status, stdout, stderr } = spawnSync('helm', [...ARGS, ...sets], { encoding: 'utf8' });
  if (status !== 0) return stderr;
  const theirs = byName(stdout.split(/^---$/m).flatMap((document) => parse(document) ?? []));
  const ours = byName(renderChart(CHART, values));
  const names = new Set([...Object.keys(ours), ...Object.keys(theirs)]);
  const differing = [...names].filter((name) => !isDeepStrictEqual(ours[name], theirs[name]));
  return differing.length === 0 ? undefined : `helm renders differently: ${differing.join(', ')}`;
}

export const helm = {
  title: 'helm renders the chart with the objects that the tests of the chart check',
  missing: () => (spawnSync('helm', ['version', '--short']).status === 0 ? undefined : 'helm'),
  run: async () => {
    const faults = Object.entries(cases()).flatMap(([title, values]) => {
      const fault = compare(values);
      return fault === undefined ? [] : [`with ${title}: ${fault}`];
    });
    return faults.length === 0 ? undefined : faults.join('\n');
  },
};
