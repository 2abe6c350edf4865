// A node in a pod, with a network of its own: clients reach it through NodePorts of its machine.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, test } from '@jest/globals';
import { until } from '../cluster/until.js';
import { apiToken, type BloomNode } from '../harness/bloom-node.js';
import { repository } from '../harness/processes.js';
import { browserSuite } from '../harness/stage.js';
import { Lab, labUnavailable } from '../hosts/lab.js';
import { callDirectly, callOver } from './relays.js';

// The suite skips itself, loudly, without namespaces.
const lab = labUnavailable() === undefined ? await Lab.open() : undefined;
afterAll(() => lab?.close());

const machine = lab?.addHost('machine.lab.test');
const address = machine?.address ?? '';
const UDP = [31_000, 31_001] as const;
const TCP = 30_999;
const HTTP = 30_080;

async function startInPod(): Promise<BloomNode> {
  if (lab === undefined || machine === undefined) throw new Error('the lab is not open');
  const pod = lab.addPod(machine, 'pod.lab.test');
  machine.forward('udp', UDP[0], { pod, port: 50_000 });
  machine.forward('udp', UDP[1], { pod, port: 50_001 });
  machine.forward('tcp', TCP, { pod, port: TCP });
  machine.forward('tcp', HTTP, { pod, port: 8080 });
  const folder = mkdtempSync(join(tmpdir(), 'bloom-pod-'));
  // People are on both workers.
  const preload = `--import=${new URL('../harness/across-workers.mjs', import.meta.url).href}`;
  const child = pod.start(process.execPath, [preload, join(repository, 'apps', 'bloom', 'dist', 'main.js')], {
    cwd: folder,
    env: {
      JF_IP: '0.0.0.0',
      JF_PORT: '8080',
      JF_HOST: `${address}:${HTTP}`,
      JF_SERVER_API_TOKEN: apiToken,
      JF_RESOURCES_BASE_PATH: join(folder, 'resources'),
      JF_MEDIA_WORKERS: '2',
      JF_WEBRTC_TURN_IP: address,
      JF_WEBRTC_TURN_LISTEN_IP: '0.0.0.0',
      JF_WEBRTC_TURN_PORT_RANGE: '50000-50001',
      JF_WEBRTC_ADVERTISED_PORTS: `50000=${UDP[0]} 50001=${UDP[1]}`,
      JF_WEBRTC_TURN_TCP_PORT: String(TCP),
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => (output += String(data)));
  const exited = once(child, 'exit');
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    if (!(await Promise.race([exited, delay(5_000, false, { ref: false })]))) child.kill('SIGKILL');
    await exited;
    rmSync(folder, { recursive: true, force: true });
  };
  const host = `${address}:${HTTP}`;
  const url = `http://${host}`;
  await until('the node is ready', async () => (await fetch(`${url}/health/ready`)).ok, { detail: () => output });
  return { url, host, pid: child.pid ?? 0, log: () => output, stop: () => end('SIGTERM'), kill: () => end('SIGKILL') };
}

const options = {
  needs: ['network namespaces', 'iptables'],
  node: startInPod,
  pagesAt: lab?.ownAddress ?? '',
} as const;

browserSuite('A node whose ports are mapped', options, (stage) => {
  test('tells each person the mapped port of its worker, and its calls pass there', async () => {
    const { ann, bob } = await callDirectly(stage, address);
    expect([ann.announcedPort, bob.announcedPort].toSorted()).toEqual(UDP);
  });

  test('carries a call through its relay over UDP', () =>
    callOver(stage, ['transport=udp'], `udp turn:${address}:3100`));

  test('carries a call through its relay over TCP', () =>
    callOver(stage, ['transport=tcp'], `tcp turn:${address}:${TCP}?transport=tcp`));
});
