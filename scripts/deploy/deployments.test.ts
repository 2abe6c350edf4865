/** Tests that each file of deploy/ matches the table, parses, and names only existing settings. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { loadConfig } from '@bloom/config';
import { createCertificate } from '@bloom/webrtc';
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

const pair = await createCertificate();
/** Returns the certificate or key that a node finds at a path. */
const readFile = (path: string): Buffer =>
  Buffer.from(path.endsWith('key.pem') || path.endsWith('.key') ? pair.keyPem : pair.certPem);

/** Returns the node's settings with the image's. @throws ConfigError for an invalid one */
function loaded(env: Record<string, string>) {
  const image = { NODE_ENV: 'production', JF_IP: '0.0.0.0', JF_WEBRTC_TURN_LISTEN_IP: '0.0.0.0' };
  const world = { cwd: '/app', hostname: 'app', cores: 2, randomBytes: (size: number) => Buffer.alloc(size), readFile };
  return loadConfig({ ...image, ...env }, world);
}

/** Returns a node's warnings about these settings. @throws ConfigError for an invalid one */
const warningsOf = (env: Record<string, string>): string[] => loaded(env).warnings.map(({ message }) => message);

test.each(Object.entries(deployments))(
  'keeps the compose file of %s equal to the output of node scripts/deploy/write.mjs',
  (name, deployment) => {
    expect(read(fileOf(name))).toBe(compose(name, deployment));
  },
);

test.each(Object.entries(deployments))(
  'gives the nodes of %s settings without warnings once filled in',
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

test('serves HTTPS and media at port 443 in the deployment with one node', () => {
  const { services } = parse(interpolate(read('compose.yml'), answers));
  const { environment, ports, volumes } = services.bloom;
  expect(loaded(environment).settings.webrtc).toMatchObject({ turnTlsHost: 'media.example.com', turnTlsOnHttp: 443 });
  expect(ports).toContain(`443:${environment.JF_PORT}`);
  expect(volumes).toContain('certificate:/certificate:ro');
  expect(services.certificate.volumes).toContain('certificate:/certificate');
});

test('sends the alerts of Prometheus to an Alertmanager that the deployment starts', () => {
  const { alerting } = parse(read('prometheus', 'prometheus.yml'));
  const { services, volumes } = parse(interpolate(read('compose.yml'), answers));
  expect(alerting.alertmanagers[0].static_configs[0].targets).toEqual(['alertmanager:9093']);
  expect(services.alertmanager.volumes).toContain('./alertmanager:/etc/alertmanager:ro');
  expect(Object.keys(volumes)).toContain('alertmanager');
});

test('shows alerts and Grafana to the machine alone', () => {
  const { services } = parse(interpolate(read('compose.yml'), answers));
  for (const name of ['alertmanager', 'grafana']) expect(services[name].ports[0]).toMatch(/^127\.0\.0\.1:/);
  expect(services.prometheus.ports).toBeUndefined();
});

const alerts = join(root, 'deploy', 'alertmanager', 'alertmanager.yml');
const amtool = spawnSync('amtool', ['--version']).status === 0;
const needsAmtool = amtool ? '' : ' [needs amtool]';
(amtool ? test.each : test.skip.each)(['critical', 'warning'])(
  `sends alerts of severity %s to the receiver that operators fill in${needsAmtool}`,
  (severity) => {
    const route = ['config', 'routes', 'test', '--config.file', alerts, `severity=${severity}`];
    expect(spawnSync('amtool', route, { encoding: 'utf8' }).stdout.trim()).toBe('operators');
  },
);

(amtool ? test.each : test.skip.each)(['email', 'slack', 'webhook'])(
  `takes the file of Alertmanager with the lines for %s filled in${needsAmtool}`,
  (way) => {
    const sample = new RegExp(`^    # (${way}_configs:\\n(?:    #   .*\\n)+)`, 'm');
    const folder = mkdtempSync(join(tmpdir(), 'bloom-alerts-'));
    const filled = join(folder, 'alertmanager.yml');
    writeFileSync(
      filled,
      readFileSync(alerts, 'utf8').replace(sample, (lines) => lines.replaceAll('    # ', '    ')),
    );
    const { status } = spawnSync('amtool', ['check-config', filled]);
    const [receiver] = parse(readFileSync(filled, 'utf8')).receivers;
    rmSync(folder, { recursive: true });
    expect(receiver).toHaveProperty(`${way}_configs`);
    expect(status).toBe(0);
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

test('names a missing required variable, as compose does', () => {
  expect(() => interpolate('${BLOOM_DOMAIN:?is a name}', {})).toThrow('BLOOM_DOMAIN is not set: it is a name');
});

test('names every variable of the compose files in the example environment', () => {
  const files = Object.keys(deployments).map((name) => read(fileOf(name)));
  const used = new Set(files.flatMap((text) => [...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name)));
  const named = [...read('env.example').matchAll(/^#?([A-Z_]+)=/gm)].map(([, name]) => name);
  expect(named.toSorted()).toEqual([...used].toSorted());
});

const models = { StatefulSet, PodDisruptionBudget, Service };

test('renders the chart to objects that Kubernetes accepts', () => {
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

/** Returns the environment of the first pod as Kubernetes fills it in. */
function environmentOfPod({ spec }: { spec: { containers: { env: { name: string; value?: string }[] }[] } }) {
  const entries = spec.containers[0]?.env.map(({ name, value = 'from-the-secret-of-kubernetes' }) => [
    name,
    value.replace('$(HOST_IP)', '203.0.113.10').replace('$(POD_IP)', '10.244.1.7').replace('$(POD_NAME)', 'media-0'),
  ]);
  return Object.fromEntries(entries ?? []) as Record<string, string>;
}

test('sends media over TLS to the node of the room through its own load balancer in the chart with TLS', () => {
  const { tls } = parse(read('helm/bloom/values.yaml'));
  const objects = renderChart(join(root, 'deploy/helm/bloom'), { replicas: 3, tls: { ...tls, enabled: true } });
  for (const object of objects) new models[object.kind as keyof typeof models](object).validate();
  const { template } = objects.find(({ kind }) => kind === 'StatefulSet').spec;
  const env = environmentOfPod(template);
  expect(warningsOf(env)).toEqual([]);
  const { webrtc, http } = loaded(env).settings;
  expect(webrtc).toMatchObject({ turnTlsHost: 'media-0.media.example.com', turnTlsOnHttp: 443 });
  expect(http.trustedProxies).toEqual([]);
  const balancers = objects.filter(({ spec }) => spec.type === 'LoadBalancer');
  const own = balancers.find(({ metadata }) => metadata.name === 'media-0');
  expect(own.metadata.annotations['external-dns.alpha.kubernetes.io/hostname']).toBe(webrtc?.turnTlsHost);
  expect(own.spec.selector).toEqual({ 'statefulset.kubernetes.io/pod-name': 'media-0' });
  expect(own.spec.ports).toEqual([{ name: 'https', port: 443, targetPort: 'http' }]);
  expect(balancers.map(({ metadata }) => metadata.name)).toEqual(['media', 'media-0', 'media-1', 'media-2']);
  const [container] = template.spec.containers;
  expect(container.readinessProbe.httpGet.scheme).toBe('HTTPS');
  expect(container.volumeMounts).toContainEqual({ name: 'certificate', mountPath: '/certificate', readOnly: true });
});

test('sends media to the NodePort of its worker on the machine of its pod in the chart with NodePorts', () => {
  const { media } = parse(read('helm/bloom/values.yaml'));
  const nodePort = { ...media.nodePort, enabled: true, workers: 3 };
  const objects = renderChart(join(root, 'deploy/helm/bloom'), { media: { ...media, nodePort } });
  for (const object of objects) new models[object.kind as keyof typeof models](object).validate();
  const { spec: pod } = objects.find(({ kind }) => kind === 'StatefulSet').spec.template;
  expect(pod.hostNetwork).toBeUndefined();
  const env = environmentOfPod({ spec: pod });
  expect(warningsOf(env)).toEqual([]);
  const { webrtc, mediaWorkers, cluster } = loaded(env).settings;
  expect(webrtc).toMatchObject({ turnIp: '203.0.113.10', turnPortRange: { min: 50_000, max: 50_002 } });
  expect([mediaWorkers, cluster?.nodeName]).toEqual([3, 'bloom@10.244.1.7']);

  const { spec: service } = objects.find(({ metadata }) => metadata.name === 'media-media');
  expect(service).toMatchObject({ type: 'NodePort', externalTrafficPolicy: 'Local', publishNotReadyAddresses: true });
  const ports = service.ports as { protocol: string; port: number; nodePort: number }[];
  const udp = ports.filter(({ protocol }) => protocol === 'UDP');
  expect(new Map(udp.map(({ port, nodePort: reached }) => [port, reached]))).toEqual(webrtc?.advertisedPorts?.listed);
  expect(udp.map(({ nodePort: reached }) => reached)).toEqual([31_000, 31_001, 31_002]);
  const tcp = ports.find(({ protocol }) => protocol === 'TCP');
  expect([tcp?.port, tcp?.nodePort]).toEqual([webrtc?.turnTcpPort, webrtc?.turnTcpPort]);
});

test("gives the chart's nodes settings without warnings, and waits for a drain", () => {
  const objects = renderChart(join(root, 'deploy/helm/bloom'));
  const { spec } = objects.find(({ kind }) => kind === 'StatefulSet').spec.template;
  const env = environmentOfPod({ spec });
  expect(warningsOf(env)).toEqual([]);
  const headless = objects.find(({ spec: service }) => service.clusterIP === 'None');
  expect(env['JF_DIST_QUERY']).toBe(`${headless.metadata.name}.calls.svc.cluster.local`);
  expect(headless.metadata.name).toBe(objects.find(({ kind }) => kind === 'StatefulSet').spec.serviceName);
  expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(Number(env['JF_DRAIN_TIMEOUT']));
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

test('puts dashboards and Prometheus where Grafana finds them in compose', () => {
  const { services } = parse(interpolate(read('compose.yml'), answers));
  const { options } = parse(read('grafana/provisioning/dashboards/bloom.yml')).providers[0];
  expect(services.grafana.volumes).toEqual(
    expect.arrayContaining([`./grafana:${options.path}:ro`, './grafana/provisioning:/etc/grafana/provisioning:ro']),
  );
  const [datasource] = parse(read('grafana/provisioning/datasources/bloom.yml')).datasources;
  expect(Object.keys(services)).toContain(new URL(datasource.url).hostname);
});

test("limits the memory of a node in every deployment, and lets the node outlive a component's process", () => {
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
