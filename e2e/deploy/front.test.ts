// Tests a node behind Debian's Caddy and beside its Prometheus. Only addresses, and intervals that a test would have to
// wait for, differ from the files in deploy/.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, expect, test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { until } from '../cluster/until.js';
import { type BloomNode, startNode } from '../harness/bloom-node.js';
import { repository } from '../harness/processes.js';
import { browserSuite } from '../harness/stage.js';
import { openProxy } from '../harness/tcp-proxy.js';

const shipped = (path: string): string => join(repository, 'deploy', path);
const folder = mkdtempSync(join(tmpdir(), 'bloom-front-'));
const running: ChildProcess[] = [];
afterAll(async () => {
  for (const child of running) {
    const ended = once(child, 'exit');
    if (child.kill('SIGKILL')) await ended;
  }
  rmSync(folder, { recursive: true, force: true });
});

/** Starts a program with its files in this test's folder. Returns a function for its output so far. */
function run(program: string, args: readonly string[]): () => string {
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  running.push(child);
  return () => text;
}

/** Replaces each of the texts. @throws Error for a missing one */
function replaced(text: string, changes: readonly (readonly [from: string, to: string])[]): string {
  return changes.reduce((result, [from, to]) => {
    if (!result.includes(from)) throw new Error(`${from} is not in the file any more`);
    return result.replaceAll(from, to);
  }, text);
}

let metricsPort = 0;
let tlsPort = 0;

/** Starts a node that is reachable only through Caddy, and a proxy that removes TLS for the pages. */
async function nodeBehindCaddy(): Promise<BloomNode> {
  tlsPort = await freeTcpPort();
  metricsPort = await freeTcpPort();
  const proxy = await openProxy(`localhost:${tlsPort}`, { secure: true });
  const host = proxy.host.replace('127.0.0.1', 'localhost');
  const node = await startNode({
    env: {
      JF_HOST: host,
      JF_METRICS_PORT: String(metricsPort),
      JF_CHECK_ORIGIN: '//127.0.0.1',
      // As the Caddyfile asks.
      JF_TRUSTED_PROXIES: '127.0.0.1',
    },
  });
  const site = replaced(readFileSync(shipped('Caddyfile'), 'utf8'), [
    ['{$BLOOM_DOMAIN}', `https://localhost:${tlsPort}`],
    ['127.0.0.1:8080', new URL(node.url).host],
    // Newer than Debian 12's Caddy.
    ['stream_close_delay 1h', ''],
  ]);
  writeFileSync(
    join(folder, 'Caddyfile'),
    `{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n\tservers {\n\t\tprotocols h1 h2\n\t}\n}\n${site}`,
  );
  const output = run('caddy', ['run', '--config', 'Caddyfile']);
  const health = async (): Promise<boolean> => (await fetch(`http://${host}/health/ready`)).status === 200;
  await until('Caddy passes requests on', health, { limitMs: 20_000, detail: output });

  return {
    ...node,
    url: `http://${host}`,
    host,
    stop: async () => {
      await node.stop();
      await proxy.close();
    },
  };
}

browserSuite('A node behind Caddy', { node: nodeBehindCaddy, needs: ['caddy', 'prometheus'] }, (stage) => {
  test('carries a call', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const [red, blue] = [await ann.addVideo({ colour: 'red' }), await bob.addVideo({ colour: 'blue' })];
    await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue')]);
  });

  test('gives each client its own address, whatever the client claims', async () => {
    // The types of `tls` lack `localAddress`, which reaches `net`.
    const addresses = { host: '127.0.0.1', port: tlsPort, localAddress: '127.0.0.2' };
    const socket = connect({
      ...addresses,
      servername: 'localhost',
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
    });
    await once(socket, 'secureConnect');
    const headers = [
      'GET /socket/peer/websocket HTTP/1.1',
      `Host: localhost:${tlsPort}`,
      'Origin: https://elsewhere.example',
      'X-Forwarded-For: 203.0.113.5',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`,
    ];
    socket.write(`${headers.join('\r\n')}\r\n\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 403 /);
    const refused = /websocket\.origin_refused.* address=(\S+)/;
    const [, address] = await until('the refusal is logged', () => refused.exec(stage.node.log()));
    expect(address).toBe('127.0.0.2');
  });

  test('is scraped by Prometheus, which evaluates all alerts', async () => {
    const port = await freeTcpPort();
    copyFileSync(shipped('prometheus/alerts.yml'), join(folder, 'alerts.yml'));
    const config = replaced(readFileSync(shipped('prometheus/prometheus.yml'), 'utf8'), [
      ['bloom:9568', `127.0.0.1:${metricsPort}`],
      ['_interval: 15s', '_interval: 1s'],
    ]);
    writeFileSync(join(folder, 'prometheus.yml'), config);
    const output = run('prometheus', [
      '--config.file=prometheus.yml',
      '--storage.tsdb.path=data',
      `--web.listen-address=127.0.0.1:${port}`,
    ]);
    const ask = async (path: string) =>
      (await (await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)).json()) as Answer;
    await until(
      'it has scraped the node',
      async () => (await ask('query?query=bloom_node_ready')).data.result?.[0]?.value[1] === '1',
      { detail: output },
    );
    // The health of a rule is unknown until it is evaluated.
    const rules = await until('all alerts were evaluated', async () => {
      const found = (await ask('rules')).data.groups?.flatMap((group) => group.rules) ?? [];
      return found.length > 0 && found.every(({ health }) => health !== 'unknown') && found;
    });
    expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
    expect(rules.filter(({ state }) => state === 'firing')).toEqual([]);

    // Grafana's dashboards query the same server, so each of their queries must be valid and have the labels of its
    // legend.
    for (const { title, expr, legendFormat = '' } of targetsOfDashboards()) {
      const query = expr.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*').replaceAll('$room', 'any');
      const { status, error, data } = await ask(`query?query=${encodeURIComponent(query)}`);
      expect([title, expr, status, error]).toEqual([title, expr, 'success', undefined]);
      const labels = [...legendFormat.matchAll(/\{\{\s*(\w+)\s*\}\}/g)].map(([, label]) => label);
      for (const { metric } of data.result ?? []) expect(Object.keys(metric)).toEqual(expect.arrayContaining(labels));
    }
  });
});

interface Target {
  title: string;
  expr: string;
  legendFormat?: string;
}

function targetsOfDashboards(): Target[] {
  return ['overview', 'room', 'node'].flatMap((name) => {
    const { panels } = JSON.parse(readFileSync(shipped(`grafana/${name}.json`), 'utf8')) as {
      panels: { title: string; targets: Omit<Target, 'title'>[] }[];
    };
    return panels.flatMap(({ title, targets }) => targets.map((target) => ({ title, ...target })));
  });
}

interface Answer {
  status: string;
  error?: string;
  data: {
    result?: { metric: Record<string, string>; value: [number, string] }[];
    groups?: { rules: { name: string; health: string; state: string }[] }[];
  };
}
