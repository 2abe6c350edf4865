// `bloomctl loadtest` against a real node: small loads, a network that loses packets, and what it must refuse.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, expect, jest, test } from '@jest/globals';
import { freeUdpRange } from '@bloom/net/testing';
import { until } from '../cluster/until.js';
import { testWith } from '../harness/needs.js';
import { repository } from '../harness/processes.js';
import { type Node, startProgram } from '../node/support/program.js';

jest.setTimeout(90_000);

const PROGRAM = join(repository, 'apps', 'bloomctl', 'bin', 'bloomctl.js');
const API_TOKEN = 'development';

let node: Node | undefined;
afterEach(async () => {
  await node?.dispose();
  node = undefined;
});

interface Loaded {
  readonly code: number | null;
  readonly err: string;
  readonly steps: readonly { people: number; wanted: number; arrived: number; invalid: number; p99Ms: number }[];
  readonly limit: { name: string; cause: string } | null;
}

function begin(url: string, args: readonly string[], token = API_TOKEN) {
  const child = spawn(process.execPath, [PROGRAM, 'loadtest', url, '--json', ...args], {
    env: { PATH: process.env['PATH'] ?? '', BLOOM_TOKEN: token },
  });
  const [out, err]: [string[], string[]] = [[], []];
  child.stdout.on('data', (chunk) => out.push(String(chunk)));
  child.stderr.on('data', (chunk) => err.push(String(chunk)));
  const ended = once(child, 'close').then(([code]): Loaded => {
    const { steps = [], limit = null } = JSON.parse(out.join('') || '{}') as Partial<Loaded>;
    return { code, err: err.join(''), steps, limit };
  });
  return { child, ended };
}

const load = (url: string, args: readonly string[], token?: string): Promise<Loaded> => begin(url, args, token).ended;

async function rooms(url: string): Promise<number> {
  const response = await fetch(`${url}/room`, { headers: { authorization: `Bearer ${API_TOKEN}` } });
  return ((await response.json()) as { data: unknown[] }).data.length;
}

const SMALL = ['--rooms', '2', '--people', '3', '--publishers', '1', '--minutes', '0.15', '--kbps', '300'];

test('delivers every packet of a small load, and leaves no rooms behind', async () => {
  node = await startProgram();
  const { code, steps, limit } = await load(node.url, [...SMALL, '--metrics', node.metricsUrl]);
  expect(limit).toBeNull();
  expect(code).toBe(0);
  expect(steps.map(({ people }) => people)).toEqual([2, 4, 6]);
  for (const { wanted, arrived, invalid } of steps) {
    expect(wanted).toBeGreaterThan(50);
    expect(arrived).toBe(wanted);
    expect(invalid).toBe(0);
  }
  expect(await rooms(node.url)).toBe(0);
});

testWith(['iptables'], 'a network that loses packets ends the ramp, and is named', async () => {
  const { first, last } = await freeUdpRange(4);
  node = await startProgram({ JF_WEBRTC_TURN_PORT_RANGE: `${first}-${last}` });
  const loss = '-m statistic --mode nth --every 10 --packet 0 -j DROP'.split(' ');
  // RTP alone, by its size: handshakes and checks pass.
  const rule = [
    '-A',
    'OUTPUT',
    '-p',
    'udp',
    '--sport',
    `${first}:${last}`,
    '-m',
    'length',
    '--length',
    '500:1300',
    ...loss,
  ];
  expect(spawnSync('iptables', rule, { encoding: 'utf8' })).toMatchObject({ status: 0 });
  const { code, steps, limit } = await load(node.url, [...SMALL, '--metrics', node.metricsUrl]);
  spawnSync('iptables', ['-D', ...rule.slice(1)]);
  expect(limit).toMatchObject({ name: 'loss', cause: 'bandwidth' });
  expect(steps).toHaveLength(1);
  expect(code).toBe(1);
});

test('refuses a plan above the ceiling, and a token that creates no rooms, before anything is sent', async () => {
  node = await startProgram();
  const much = await load(node.url, ['--rooms', '10', '--people', '10', '--publishers', '10']);
  expect(much.code).toBe(64);
  expect(much.err).toMatch(/would forward 900 tracks, and the ceiling is 200.*--ceiling 900/s);
  const peer = `${Buffer.from('["a","b",1]').toString('base64url')}.eHh4`;
  const stranger = await load(node.url, SMALL, peer);
  expect(stranger.code).toBe(77);
  expect(stranger.err).not.toContain(peer);
  const wrong = await load(node.url, SMALL, 'not-the-token');
  expect(wrong.code).toBe(77);
  expect(await rooms(node.url)).toBe(0);
});

test('ends a load test with its rooms on Ctrl-C', async () => {
  node = await startProgram();
  const { url } = node;
  const { child, ended } = begin(url, [...SMALL, '--minutes', '5']);
  await until('the load has begun', async () => (await rooms(url)) > 0);
  child.kill('SIGINT');
  expect((await ended).code).toBe(130);
  expect(await rooms(url)).toBe(0);
});
