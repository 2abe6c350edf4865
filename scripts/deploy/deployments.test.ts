/** Tests that each file of deploy/ matches the table, parses, and names only existing settings. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { loadConfig } from '@bloom/config';
import { StatefulSet } from 'kubernetes-models/apps/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Service } from 'kubernetes-models/v1';
import { parse } from 'yaml';
import { deployments, environmentOf, interpolate } from './deployments.mjs';
import { root } from '../setup.mjs';
import { renderChart } from '../testing/helm.mjs';
import { compose, fileOf } from './write.mjs';

const read = (...path: string[]): string => readFileSync(join(root, 'deploy', ...path), 'utf8');
const answers = {
  BLOOM_DOMAIN: 'media.example.com',
  BLOOM_HOST: 'media.example.com',
  BLOOM_PUBLIC_IP: '203.0.113.10',
  BLOOM_API_TOKEN: 'token-of-the-backend',
  BLOOM_SECRET_KEY_BASE: 'key-of-all-tokens',
  GRAFANA_PASSWORD: 'c',
};

/** Returns a node's warnings about these settings. @throws ConfigError for an invalid one */
function warningsOf(env: Record<string, string>): string[] {
  const image = { NODE_ENV: 'production', JF_IP: '0.0.0.0', JF_WEBRTC_TURN_LISTEN_IP: '0.0.0.0' };
  const world = { cwd: '/app', hostname: 'app', cores: 2, randomBytes: (size: number) => Buffer.alloc(size) };
  return loadConfig({ ...image, ...env }, world).warnings.map(({ message }) => message);
}

test.each(Object.entries(deployments))(
  'the compose file of %s equals the output of node scripts/deploy/write.mjs',
  (name, deployment) => {
    expect(read(fileOf(name))).toBe(compose(name, deployment));
  },
);

test.each(Object.entries(deployments))(
  '%s gives its nodes settings without warnings once filled in',
  (name, { services }) => {
    const file = parse(interpolate(read(fileOf(name)), answers));
    for (const service of services) {
      const { environment, ports } = file.services[service.name];
      expect(Object.keys(environment)).toEqual(Object.keys(environmentOf(service)));
      expect(ports).toContain(`${environment.JF_WEBRTC_TURN_PORT_RANGE}:${environment.JF_WEBRTC_TURN_PORT_RANGE}/udp`);
      expect(warningsOf(environment)).toEqual([]);
    }
  },
);

const docker = spawnSync('docker-compose', ['version']).status === 0;
(docker ? test.each : test.skip.each)(Object.keys(deployments))(
  `docker-compose takes the file of %s${docker ? '' : ' [needs docker-compose]'}`,
  (name) => {
    const { status, stderr } = spawnSync('docker-compose', ['-f', join(root, 'deploy', fileOf(name)), 'config', '-q'], {
      encoding: 'utf8',
      env: { ...process.env, ...answers },
    });
    expect(status).toBe(0);
    expect(stderr).toBe('');
  },
);

test('a missing required variable is named, as compose does', () => {
  expect(() => interpolate('${BLOOM_DOMAIN:?is a name}', {})).toThrow('BLOOM_DOMAIN is not set: it is a name');
});

test('the example environment names every variable of the compose files', () => {
  const files = Object.keys(deployments).map((name) => read(fileOf(name)));
  const used = new Set(files.flatMap((text) => [...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name)));
  const named = [...read('env.example').matchAll(/^#?([A-Z_]+)=/gm)].map(([, name]) => name);
  expect(named.toSorted()).toEqual([...used].toSorted());
});

const models = { StatefulSet, PodDisruptionBudget, Service };

test('the chart renders to objects that Kubernetes accepts', () => {
  const objects = renderChart(join(root, 'deploy/helm/bloom'));
  expect(objects.map(({ kind }) => kind).toSorted()).toEqual([
    'PodDisruptionBudget',
    'Service',
    'Service',
    'StatefulSet',
  ]);
  for (const object of objects) new models[object.kind as keyof typeof models](object).validate();
  const withMonitor = renderChart(join(root, 'deploy/helm/bloom'), { podMonitor: true });
  expect(withMonitor.map(({ kind }) => kind)).toContain('PodMonitor');
});

test('the chart gives its nodes settings without warnings, and waits for a drain', () => {
  const objects = renderChart(join(root, 'deploy/helm/bloom'));
  const { spec } = objects.find(({ kind }) => kind === 'StatefulSet').spec.template;
  const entries = spec.containers[0].env.map(
    ({ name, value = 'from-the-secret-of-kubernetes' }: { name: string; value?: string }) => [
      name,
      value.replace('$(HOST_IP)', '203.0.113.10'),
    ],
  );
  const env = Object.fromEntries(entries);
  expect(warningsOf(env)).toEqual([]);
  const headless = objects.find(({ spec: service }) => service.clusterIP === 'None');
  expect(env.JF_DIST_QUERY).toBe(`${headless.metadata.name}.calls.svc.cluster.local`);
  expect(headless.metadata.name).toBe(objects.find(({ kind }) => kind === 'StatefulSet').spec.serviceName);
  expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(Number(env.JF_DRAIN_TIMEOUT));
});

interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  datasource: { type: string; uid: string };
  fieldConfig: object;
  targets: { refId: string; expr: string; legendFormat?: string }[];
}

/** Number of columns in Grafana's grid. */
const GRID = 24;

test.each(['overview', 'room', 'node'])('Grafana can show the dashboard %s', (name) => {
  const { panels, templating, schemaVersion } = JSON.parse(read('grafana', `${name}.json`)) as {
    panels: Panel[];
    templating: { list: { name: string; type: string }[] };
    schemaVersion: number;
  };
  expect(schemaVersion).toBeGreaterThanOrEqual(36);
  expect(templating.list[0]).toMatchObject({ name: 'datasource', type: 'datasource', query: 'prometheus' });
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const variables = new Set([...templating.list.map((variable) => variable.name), '__rate_interval']);
  const taken = new Set<string>();
  for (const { title, type, gridPos, datasource, targets, fieldConfig } of panels) {
    expect(['stat', 'timeseries']).toContain(type);
    expect(fieldConfig).toMatchObject({ defaults: {}, overrides: [] });
    expect([title, datasource]).toEqual([title, { type: 'prometheus', uid: '${datasource}' }]);
    expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
    for (const [, used = ''] of JSON.stringify(targets).matchAll(/\$\{?(\w+)/g)) expect(variables).toContain(used);

    expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(GRID);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect([title, taken.has(`${x} ${y}`)]).toEqual([title, false]);
        taken.add(`${x} ${y}`);
      }
    }
  }
});

test('Grafana finds its dashboards and Prometheus where compose puts them', () => {
  const { services } = parse(interpolate(read('compose.yml'), answers));
  const { options } = parse(read('grafana/provisioning/dashboards/bloom.yml')).providers[0];
  expect(services.grafana.volumes).toEqual(
    expect.arrayContaining([`./grafana:${options.path}:ro`, './grafana/provisioning:/etc/grafana/provisioning:ro']),
  );
  const [datasource] = parse(read('grafana/provisioning/datasources/bloom.yml')).datasources;
  expect(Object.keys(services)).toContain(new URL(datasource.url).hostname);
});

test('every deployment limits the memory of a node, and lets the node outlive a process of a component', () => {
  for (const name of Object.keys(deployments)) {
    const nodes = Object.keys(deployments[name as keyof typeof deployments].services).length;
    expect(read(fileOf(name)).split('mem_limit: "${BLOOM_MEMORY:-4g}"')).toHaveLength(nodes + 1);
  }
  expect(JSON.stringify(renderChart(join(root, 'deploy/helm/bloom')))).toContain('"limits":{"memory":"4Gi"}');
  const unit = read('systemd/bloom.service').split('\n');
  expect(unit).toContain('MemoryMax=4G');
  expect(unit).toContain('OOMPolicy=continue');
});

const systemd = spawnSync('systemd-analyze', ['--version']).status === 0;
(systemd ? test : test.skip)(`the systemd unit has no error${systemd ? '' : ' [needs systemd-analyze]'}`, () => {
  const { stderr } = spawnSync('systemd-analyze', ['verify', join(root, 'deploy/systemd/bloom.service')], {
    encoding: 'utf8',
  });
  expect(stderr.split('\n').filter((line) => line.includes('bloom.service'))).toEqual([]);
});

(systemd ? test : test.skip)(`the systemd unit is hardened${systemd ? '' : ' [needs systemd-analyze]'}`, () => {
  // Exposure in tenths, by systemd's measure: 100 without any hardening.
  const rating = ['security', '--offline=true', '--threshold=20', join(root, 'deploy/systemd/bloom.service')];
  const { status, stdout } = spawnSync('systemd-analyze', rating, { encoding: 'utf8' });
  expect(status).toBe(0);
  expect(stdout.split('\n').findLast((line) => line !== '')).toContain('OK');
});
