// bloomctl over HTTP beside a node that answers no inspection: rooms and people with the API token alone.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { printMeasurements, promise, timesAnEmptyProgram } from '../harness/measurements.js';
import { repository } from '../harness/processes.js';
import { type Node, startProgram } from '../node/support/program.js';

jest.setTimeout(60_000);

const TOKEN = 'token-of-the-operator-77';

let node: Node;
/** Home of the operator, with a file that holds the token. */
let home: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'bloomctl-people-'));
  writeFileSync(join(home, 'token'), `${TOKEN}\n`, { mode: 0o600 });
  node = await startProgram({ JF_SERVER_API_TOKEN: TOKEN, JF_INSPECTION: 'off' });
  expect(await run(`context add lab ${node.url} --token-file token`)).toMatchObject({ code: 0, err: '' });
}, 60_000);
afterAll(async () => {
  await node?.dispose();
  rmSync(home, { recursive: true, force: true });
  printMeasurements('bloomctl for people');
});

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  readonly ms: number;
}

function start(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const from = performance.now();
  const child = spawn(process.execPath, [join(repository, 'apps/bloomctl/bin/bloomctl.js'), ...args], {
    cwd: home,
    env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const text = { out: '', err: '' };
  child.stdout.on('data', (data: Buffer) => (text.out += data.toString()));
  child.stderr.on('data', (data: Buffer) => (text.err += data.toString()));
  const ended = once(child, 'close').then(([code]): Ran => ({ code, ...text, ms: performance.now() - from }));

  return { child, ended };
}

async function run(line: string | readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const ran = await start(typeof line === 'string' ? line.split(' ') : line, env).ended;
  expect(ran.out + ran.err).not.toContain(TOKEN);

  return ran;
}

async function document(line: string) {
  const { code, out, err } = await run(`${line} --json`);
  expect({ line, code, err }).toEqual({ line, code: 0, err: '' });
  // oxlint-disable-next-line typescript/no-explicit-any -- JSON of another program
  return JSON.parse(out) as any;
}

test('names a server once, and then handles its rooms and people by the API alone', async () => {
  expect(readFileSync(join(home, '.config/bloom/contexts.json'), 'utf8')).not.toContain(TOKEN);
  expect((await document('context list')).contexts).toMatchObject([
    { name: 'lab', isCurrent: true, tokenFrom: 'file' },
  ]);

  expect((await document('rooms create kitchen --max-peers 1')).room).toBe('kitchen');
  expect((await run('rooms create kitchen')).code).toBe(64);
  const ann = await document('peers add kitchen --name Ann --publish audio,video --ttl 1h');
  const full = await run('peers add kitchen');
  expect([full.code, full.err]).toEqual([75, expect.stringContaining('Reached peer limit in room kitchen')]);
  expect((await document('peers list kitchen')).peers).toMatchObject([
    { id: ann.peer, name: 'Ann', permissions: { publish: ['audio', 'video'], subscribe: true, metadata: true } },
  ]);
  const { permissions } = await document(`peers permissions kitchen ${ann.peer} --publish none --subscribe no`);
  expect(permissions).toEqual({ publish: false, subscribe: false, metadata: true });
  expect((await run(`peers mute kitchen ${ann.peer}`)).code).toBe(65);
  expect((await run(`peers kick kitchen ${ann.peer} --yes`)).code).toBe(0);
  expect((await document('peers list kitchen')).peers).toEqual([]);

  expect((await document('rooms list')).rooms).toMatchObject([{ id: 'kitchen', config: { maxPeers: 1 } }]);
  expect((await run('rooms delete kitchen')).code).toBe(64);
  expect((await run('rooms delete kitchen --yes')).code).toBe(0);
  expect((await run('rooms delete kitchen --yes')).code).toBe(65);
  expect(await document('rooms list')).toMatchObject({ total: 0, rooms: [] });
});

test('invites guests and viewers, and lists recordings', async () => {
  const { room } = await document('rooms create');
  const { link, token } = await document(`invite ${room} --uses 1 --name Guest`);
  expect(link).toBe(`${node.url}/#invitation=${token}`);
  const join = () =>
    fetch(`${node.url}/invitation`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    });
  expect([(await join()).status, (await join()).status]).toEqual([201, 410]);
  expect((await document(`peers list ${room}`)).peers).toMatchObject([{ name: 'Guest' }]);

  const { hlsUrl, token: viewing } = await document(`viewer ${room} --ttl 1h`);
  expect(hlsUrl).toContain(`/hls/${room}/~${viewing}/`);
  expect((await document('recordings list')).recordings).toEqual([]);
  expect((await run(`recordings rm ${room} part_2026-11-29T12-00-00.000Z --yes`)).code).toBe(65);
  expect((await document('check server')).ok).toBe(true);
  expect((await document('check recordings')).ok).toBe(true);
  expect((await run(`check room ${room} --people 1`)).code).toBe(1);
  expect((await run('check server --url http://127.0.0.1:9 --token-file token')).code).toBe(69);
  expect((await run(`rooms delete ${room} --yes`)).code).toBe(0);
});

test('takes the token from a command, and ends with 77 if the server refuses it', async () => {
  const add = ['context', 'add', 'keyring', node.url, '--token-command'];
  expect((await run([...add, 'cat "$HOME/token"'])).code).toBe(0);
  expect((await run('rooms list --context keyring')).code).toBe(0);
  expect((await run([...add, 'echo wrong-token-of-a-keyring'])).code).toBe(0);
  const refused = await run('rooms list --context keyring');
  expect([refused.code, refused.err]).toEqual([77, expect.stringContaining('the command of context keyring')]);
  expect(refused.err).not.toContain('wrong-token');
});

test('shows the token in no argument of any process, while it waits for an answer', async () => {
  const silent = createServer(() => undefined).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const asked = once(silent, 'request');
  const { port } = silent.address() as { port: number };
  await run(['context', 'add', 'silent', `http://127.0.0.1:${port}`, '--token-command', 'cat token']);
  const { child, ended } = start(['rooms', 'list', '--context', 'silent', '--timeout', '1s']);
  const [request] = (await asked) as [{ headers: { authorization?: string } }];
  expect(request.headers.authorization).toBe(`Bearer ${TOKEN}`);
  if (existsSync('/proc')) {
    expect(readFileSync(`/proc/${child.pid}/cmdline`, 'utf8')).not.toContain(TOKEN);
    expect(readFileSync(`/proc/${child.pid}/environ`, 'utf8')).not.toContain(TOKEN);
  }
  expect((await ended).code).toBe(75);
  silent.closeAllConnections();
  silent.close();
});

test('refuses files that others can use, and says how to change that', async () => {
  for (const [file, line] of [
    ['.config/bloom/contexts.json', 'rooms list'],
    ['token', `rooms list --url ${node.url} --token-file token`],
  ] as const) {
    chmodSync(join(home, file), 0o644);
    const { code, err } = await run(line);
    expect({ line, code, err }).toEqual({ line, code: 78, err: expect.stringContaining('chmod 600 ') });
    chmodSync(join(home, file), 0o600);
  }
});

test('answers quickly, including the start of the program', async () => {
  for (const line of ['--version', 'rooms list']) {
    const times = await timesAnEmptyProgram(() => run(line, { BLOOM_CONTEXT: 'lab' }));
    promise(`bloomctl ${line}`, times, { bound: 5, unit: 'starts of Node' });
  }
});
