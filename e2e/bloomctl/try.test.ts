// `bloomctl try` against real nodes: working ones, and ones that fail as deployments do.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, jest, test } from '@jest/globals';
import { freeTcpPort, freeUdpRange } from '@bloom/net/testing';
import { until } from '../cluster/until.js';
import { testWith } from '../harness/needs.js';
import { makeCertificate, repository } from '../harness/processes.js';
import { type Node, startProgram } from '../node/support/program.js';

jest.setTimeout(90_000);

const PROGRAM = join(repository, 'apps', 'bloomctl', 'bin', 'bloomctl.js');
const API_TOKEN = 'development';
/** An address on the machine's link that nothing answers. */
const NOBODY = '198.18.0.2';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

async function start(env: Readonly<Record<string, string>> = {}): Promise<Node> {
  const node = await startProgram(env);
  undo.push(() => node.dispose());
  return node;
}

interface Step {
  step: string;
  ok: boolean;
  media?: { remote: string; received: number };
  failure?: { exit: number; problem: string | null; message: string; fix: string };
}

interface Tried {
  readonly code: number | null;
  readonly steps: readonly Step[];
  readonly as: string;
  readonly output: string;
}

interface TryOptions {
  readonly token?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

function begin(url: string, { token = API_TOKEN, args = [], env = {} }: TryOptions = {}) {
  const child = spawn(process.execPath, [PROGRAM, 'try', url, '--json', ...args], {
    env: { PATH: process.env['PATH'] ?? '', BLOOM_TOKEN: token, ...env },
  });
  let output = '';
  let document = '';
  child.stdout.on('data', (chunk) => {
    document += chunk;
    output += chunk;
  });
  child.stderr.on('data', (chunk) => (output += chunk));
  const ended = once(child, 'close').then(([code]): Tried => {
    const { steps = [], as = '' } = JSON.parse(document) as Partial<Tried>;
    return { code, steps, as, output };
  });
  return { child, ended };
}

const attempt = (url: string, options: TryOptions = {}): Promise<Tried> => begin(url, options).ended;

const stepOf = ({ steps }: Tried, name: string): Step | undefined => steps.find(({ step }) => step === name);

async function api(node: Node, path: string, body?: object): Promise<{ status: number; data: never }> {
  const response = await fetch(`${node.url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${API_TOKEN}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const { data } = (await response.json()) as { data: never };
  return { status: response.status, data };
}

const roomsOf = async (node: Node): Promise<{ id: string }[]> => (await api(node, '/room')).data;

test('brings media back over every path that a node announces, and leaves no room behind', async () => {
  const turnPort = await freeTcpPort();
  const node = await start({ JF_WEBRTC_TURN_TCP_PORT: String(turnPort) });
  const tried = await attempt(node.url);
  expect(tried.steps.map(({ step, ok }) => `${step} ${ok}`)).toEqual([
    'http true',
    'room true',
    'websocket true',
    'udp true',
    'relay-udp true',
    'relay-tcp true',
  ]);
  expect(tried.code).toBe(0);
  expect(stepOf(tried, 'relay-tcp')?.media?.remote).toBe(`127.0.0.1:${turnPort}`);
  expect(stepOf(tried, 'udp')?.media?.received).toBeGreaterThanOrEqual(30);
  expect(await roomsOf(node)).toEqual([]);
});

testWith(['openssl'], 'a node with TLS is called by its relay as well, unless its certificate is bad', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-try-'));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  const { key, cert } = makeCertificate(folder);
  const node = await start({
    JF_SSL_KEY_PATH: key,
    JF_SSL_CERT_PATH: cert,
    JF_WEBRTC_TURN_IP: 'localhost',
    JF_WEBRTC_TURN_TLS_PORT: String(await freeTcpPort()),
  });
  const url = `https://localhost:${node.port}`;
  const trusted = await attempt(url, { env: { NODE_EXTRA_CA_CERTS: cert } });
  expect(stepOf(trusted, 'relay-tls')?.media?.received).toBeGreaterThanOrEqual(30);
  expect(trusted.code).toBe(0);
  const untrusted = await attempt(url);
  expect(stepOf(untrusted, 'http')?.failure?.message).toMatch(/^No browser accepts the certificate of localhost/);
  expect(untrusted.code).toBe(69);
});

test("names a wrong address in the words of the node's log", async () => {
  const node = await start({ JF_WEBRTC_TURN_IP: NOBODY, JF_WEBRTC_TURN_LISTEN_IP: '127.0.0.1' });
  // The default limit is longer than the server takes to call media failed.
  const tried = await attempt(node.url);
  const { failure } = stepOf(tried, 'udp') ?? {};
  expect(failure?.problem).toBe('NO_CHECKS');
  const [, where = 'not in the log'] = /nothing arrives from this client at ([\d.:]+)\/udp/.exec(node.output()) ?? [];
  expect(failure?.message).toBe(`Nothing arrives from this client at ${where}.`);
  expect(failure?.fix).toMatch(/^Set JF_WEBRTC_TURN_IP to an address that clients reach, and open UDP port \d+ /);
  expect(tried.code).toBe(69);
  expect(await roomsOf(node)).toEqual([]);
});

testWith(['iptables'], 'a firewall that drops UDP leaves the relay over TCP, and 1 for scripts', async () => {
  const { first, last } = await freeUdpRange(4);
  const node = await start({
    JF_WEBRTC_TURN_PORT_RANGE: `${first}-${last}`,
    JF_WEBRTC_TURN_TCP_PORT: String(await freeTcpPort()),
  });
  const rule = (action: string, chain: string, side: string): void => {
    const args = [action, chain, '-p', 'udp', side, `${first}:${last}`, '-j', 'DROP'];
    expect(spawnSync('iptables', args, { encoding: 'utf8' })).toMatchObject({ status: 0 });
  };
  rule('-A', 'INPUT', '--dport');
  const closed = await attempt(node.url, { args: ['--within', '2s'] });
  rule('-D', 'INPUT', '--dport');
  expect(stepOf(closed, 'udp')?.failure?.problem).toBe('NO_CHECKS');
  expect(stepOf(closed, 'relay-tcp')?.media?.received).toBeGreaterThanOrEqual(30);
  expect(closed.code).toBe(1);

  rule('-A', 'OUTPUT', '--sport');
  const oneWay = await attempt(node.url, { args: ['--within', '2s'] });
  rule('-D', 'OUTPUT', '--sport');
  expect(stepOf(oneWay, 'udp')?.failure?.problem).toBe('ONE_WAY');
});

test('seats two guests with an invitation, and one with the token of a peer', async () => {
  const node = await start();
  const { room } = (await api(node, '/room', {})).data as { room: { id: string } };
  const invitation = (await api(node, `/room/${room.id}/invitation`, {})).data as { token: string };
  const guests = await attempt(node.url, { token: `${node.url}/#invitation=${invitation.token}` });
  expect(guests.as).toBe('invitation');
  expect(guests.code).toBe(0);
  const peer = (await api(node, `/room/${room.id}/peer`, { type: 'webrtc' })).data as { token: string };
  const folder = mkdtempSync(join(tmpdir(), 'bloom-try-'));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'token'), `${peer.token}\n`, { mode: 0o600 });
  const alone = await attempt(node.url, { token: '', args: ['--token-file', join(folder, 'token')] });
  expect(alone.as).toBe('peer');
  expect(stepOf(alone, 'udp')?.media?.received).toBeGreaterThanOrEqual(30);
  expect(alone.code).toBe(0);
  expect((await roomsOf(node)).map(({ id }) => id)).toEqual([room.id]);
  for (const secret of [invitation.token, peer.token]) {
    expect(guests.output + alone.output + node.output()).not.toContain(secret);
  }
});

test('ends the trial with 77 on refused, expired and used tokens, without showing them', async () => {
  const node = await start();
  const { room } = (await api(node, '/room', {})).data as { room: { id: string } };
  const path = `/room/${room.id}/invitation`;
  const brief = (await api(node, path, { ttl: 1 })).data as { token: string; expires_at: number };
  const single = (await api(node, path, { uses: 1 })).data as { token: string };
  const silent = (await api(node, path, { permissions: { publish: ['audio'] } })).data as { token: string };
  const wrong = await attempt(node.url, { token: 'not-the-token-of-this-server' });
  expect(wrong.code).toBe(77);
  expect(wrong.output).not.toContain('not-the-token-of-this-server');
  const listener = await attempt(node.url, { token: silent.token });
  expect(stepOf(listener, 'udp')?.failure?.message).toMatch(/takes no video from this participant/);
  expect(listener.code).toBe(77);
  const usedUp = await attempt(node.url, { token: single.token });
  expect(stepOf(usedUp, 'room')?.failure?.message).toMatch(/used up/);
  await until('the invitation has expired', () => Promise.resolve(Date.now() > brief.expires_at));
  const expired = await attempt(node.url, { token: brief.token });
  expect(stepOf(expired, 'room')?.failure?.message).toMatch(/has expired/);
  expect(expired.code).toBe(77);
  const broken = await attempt(node.url, { token: `${Buffer.from('["a","b",1]').toString('base64url')}.eHh4` });
  expect(stepOf(broken, 'websocket')?.failure?.message).toMatch(/invalid token/);
  expect(broken.code).toBe(77);
});

test('distinguishes a server that never answers from something that is not a server', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  undo.push(() => silent.close());
  const { port } = silent.address() as { port: number };
  const unanswered = await attempt(`http://127.0.0.1:${port}`, { args: ['--timeout', '500ms'] });
  expect(unanswered.code).toBe(75);
  const nobody = await attempt(`http://127.0.0.1:${await freeTcpPort()}`);
  expect(stepOf(nobody, 'http')?.failure?.message).toMatch(/^Nothing listens at 127\.0\.0\.1:\d+\.$/);
  expect(nobody.code).toBe(69);
});

test('leaves no room behind on Ctrl-C', async () => {
  const node = await start({ JF_WEBRTC_TURN_IP: NOBODY, JF_WEBRTC_TURN_LISTEN_IP: '127.0.0.1' });
  const { child, ended } = begin(node.url);
  await until('the room is there', async () => (await roomsOf(node)).length === 1);
  child.kill('SIGINT');
  expect((await ended).code).toBe(130);
  expect(await roomsOf(node)).toEqual([]);
});
