// Tests what bloomctl does to a cluster when it inspects it (nothing), changes it (temporarily), or dies in between.
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { until } from '../cluster/until.js';
import { printMeasurements, promise, timesAnEmptyProgram } from '../harness/measurements.js';
import { FullScreen } from './picture.js';
import { type Label, LABELS, secrets, Trio } from './trio.js';

jest.setTimeout(60_000);

let trio: Trio;
beforeAll(async () => {
  trio = await Trio.start({ c: { JF_INSPECTION: 'read' } });
  await room('kitchen', 'a');
}, 120_000);
afterAll(async () => {
  await trio?.stop();
  printMeasurements('bloomctl');
});

/** Creates a room on that node, which placement must choose. */
async function room(id: string, label: Label): Promise<void> {
  const { load } = { load: await trio.document('placement', 'dry-run') };
  expect(load.chosen).toBe(trio.name(label));
  expect((await trio.request(label, 'POST /room', { roomId: id })).status).toBe(201);
}

function counts(): Promise<(number | undefined)[]> {
  return Promise.all(LABELS.map((label) => trio.count(label)));
}

/** Sends requests to the room's actor until the returned function is called. */
function traffic(): () => Promise<void> {
  let going = true;
  const done = (async () => {
    while (going) {
      await trio.request('b', 'POST /room/kitchen/peer', { type: 'nonsense', options: {} });
      const { data } = await trio.json('b', 'POST /room/kitchen/peer', { type: 'webrtc', options: {} });
      if (data?.peer) await trio.request('b', `DELETE /room/kitchen/peer/${data.peer.id}`);
    }
  })();
  return async () => {
    going = false;
    await done;
  };
}

async function faultsOf(label: Label): Promise<{ kind: string; target: string; tool: string }[]> {
  return (await trio.document('faults', label)).nodes[0].faults;
}

describe('an attached tool', () => {
  test('does not count as a member: it is not announced, and gets no rooms', async () => {
    const watching = trio.start(['logs', '--all', '--follow', '--jsonl']);
    await until('it is attached', () => watching.out().includes('"node":"c@127.0.0.1"'));
    expect(await counts()).toEqual([3, 3, 3]);
    for (const label of LABELS) expect(trio.nodes[label].log()).not.toMatch(/connected to[^\n]*bloomctl/);
    const events = await trio.document('cluster', 'events', '--all');
    for (const { node } of events.items) expect(LABELS.map((label) => trio.name(label))).toContain(node);
    const load = await trio.document('load');
    expect(load.nodes.map(({ node }: { node: string }) => node).toSorted()).toEqual(LABELS.map((l) => trio.name(l)));
    expect((await trio.document('nodes')).nodes).toHaveLength(3);
    expect((await trio.run(['names'])).out).not.toContain('bloomctl');

    watching.child.kill('SIGINT');
    expect((await watching.ended).code).toBe(0);
    expect(await counts()).toEqual([3, 3, 3]);
    for (const label of LABELS) expect(trio.nodes[label].log()).not.toMatch(/disconnected from[^\n]*bloomctl/);
  });

  test('answers quickly, including the start of the program', async () => {
    promise('bloomctl nodes', await timesAnEmptyProgram(() => trio.run(['nodes'])), {
      bound: 5,
      unit: 'starts of Node',
    });
  });

  test('colours text only on a terminal, and truncates nothing in a pipe', async () => {
    const { out, code } = await trio.run(['nodes']);
    expect(code).toBe(0);
    expect(out).not.toContain('\u001b');
    expect(out).toContain('SAMPLE');
    expect(out).toMatch(/^a@127\.0\.0\.1 {2}\* {2}up /m);
    expect(out).toMatch(/^3 members, 0 unreachable\. \* asked here\.$/m);
    expect((await trio.run(['nodes', '--color'], { env: { NO_COLOR: '1' } })).out).toContain('\u001b[32mup');
  });
});

describe('the full screen', () => {
  test('shows all nodes, reacts to keys, and restores the terminal', async () => {
    const top = new FullScreen(trio, ['top', '--all', '--every', '300ms']);
    await until('all nodes are there', () =>
      LABELS.every((label) => new RegExp(`^${label} +\\d+ ms`, 'm').test(top.screen)),
    );
    expect(top.screen.split('\n').length).toBeLessThanOrEqual(24);
    top.press('/kitchen\r');
    await until('it is filtered', () => /filter kitchen/.test(top.screen) && !/events_node/.test(top.screen));
    top.press('1');
    await until('the actor is open', () => /behaviour +.*room/.test(top.screen));
    top.press('qq');
    expect(await top.end()).toBe(0);
    expect(top.isLeft).toBe(true);
  });
});

describe('doctor', () => {
  test('finds no fault in a working node', async () => {
    const { code, out, err } = await trio.run(['doctor', 'b']);
    expect(code).toBe(0);
    expect(err).toBe('');
    const layers = out.split('\n').flatMap((line) => /^ {2}ok {4}(\w+(?: mapper)?)/.exec(line)?.[1] ?? []);
    expect(layers).toEqual(['resolve', 'port mapper', 'name', 'tcp', 'handshake', 'cookie', 'service', 'request']);
    expect(out).toContain('all layers of b@127.0.0.1 work');
    expect((await trio.run(['doctor', trio.name('c')])).out).toContain('read only');
  });

  test('names the wrong cookie, as every other command does', async () => {
    const env = { BLOOM_COOKIE: 'another-cookie' };
    const { code, out } = await trio.run(['doctor'], { env });
    expect(code).toBe(77);
    expect(out).toMatch(/FAIL {2}cookie {7}refused\. ours [0-9a-f]{4}…, from the environment \(BLOOM_COOKIE\)/);
    expect(out).not.toContain('another-cookie');
    const nodes = await trio.run(['nodes'], { env });
    expect(nodes.code).toBe(77);
    expect(nodes.out).toBe('');
    expect(nodes.err).toContain('bloomctl doctor');
    const plain = await trio.run(['nodes', '--cookie', secrets.cookie], { env: { BLOOM_COOKIE: '' } });
    expect(plain.code).toBe(0);
    expect(plain.err).toContain('can be read by every user');
    expect((await trio.run(['nodes', '--cookie-file', 'cookie'], { env: { BLOOM_COOKIE: '' } })).code).toBe(0);
  });

  test.each([
    [['nodes', '--node', 'nobody'], 65, 'no node called nobody'],
    [['nodes', '--mapper-port', '1'], 69, 'no port mapper'],
    [['ps', 'nobody'], 65, 'no member is called nobody'],
    [['room', 'nothere'], 65, 'nothere'],
    [['actor', 'rooms/nothere'], 65, 'rooms/nothere'],
    [['placement', 'explain', 'nothere'], 65, 'nothere'],
    [['trace', 'rooms/nothere'], 65, 'nothere'],
    [['nodes', '--nonsense'], 64, '--nonsense'],
    [['suspend', 'rooms/kitchen', '--yes'], 64, '--for'],
    [['actors', '--on', 'c', '--limit', '0'], 64, '--limit'],
  ])('%j ends with %i', async (args, expected, words) => {
    const { code, out, err } = await trio.run(args);
    expect(code).toEqual(expected);
    expect(out).toBe('');
    expect(err).toContain(words);
  });
});

describe('a trace', () => {
  test('ends at its limit and reports that', async () => {
    const stop = traffic();
    const { code, out, err } = await trio.run(['trace', 'rooms/kitchen', '--max', '5', '--within', '20s']);
    await stop();
    expect(code).toBe(0);
    expect(out.trim().split('\n')).toHaveLength(5);
    expect(err).toContain('stops after 5 messages or 20 s');
    expect(err).toMatch(/limit reached \(5 of 5\)\. \d+ dropped/);
  });

  test('ends when its time is up', async () => {
    const { code, out, err, ms } = await trio.run(['trace', 'rooms/kitchen', '--within', '400ms']);
    expect(code).toBe(0);
    expect(out).toBe('');
    expect(err).toContain('time is up (0 of 20)');
    expect(ms).toBeGreaterThan(400);
  });

  test('ends when its tool is killed, even on a node without a link to the tool', async () => {
    const stop = traffic();
    const tracing = trio.start(['trace', 'rooms/*', '--all', '--max', '10000', '--within', '10m', '--jsonl']);
    await until('messages come', () => tracing.out().split('\n').length > 5);
    const traced = async (): Promise<number> => {
      const { nodes } = await trio.document('actors', '--all', '--match', 'inspection-*', '--limit', '1000');
      return nodes.reduce((sum: number, { matched }: { matched: number }) => sum + matched, 0);
    };
    tracing.child.kill('SIGKILL');
    await tracing.ended;
    await until('nothing is left of it', async () => (await traced()) === 0, { limitMs: 10_000 });
    await stop();
  });
});

describe('a change', () => {
  test('makes no change without confirmation', async () => {
    const { code, err } = await trio.run(['kill', 'rooms/kitchen'], { input: 'yes\n' });
    expect(code).toBe(64);
    expect(err).toContain('say --yes');
    expect((await trio.run(['room', 'kitchen'])).code).toBe(0);
  });

  test('makes no change on a read-only node', async () => {
    const { code, err } = await trio.run(['kill', 'rooms', '--on', 'c', '--yes']);
    expect(code).toBe(77);
    expect(err).toContain('JF_INSPECTION=read');
    expect((await trio.run(['ps', 'c'])).code).toBe(0);
  });

  test('logs a change on the node with the name of the tool', async () => {
    await room('victim', 'b');
    const { code, out } = await trio.run(['kill', 'rooms/victim', '--yes', '--reason', 'a test']);
    expect(code).toBe(0);
    expect(out).toBe('rooms/victim on b@127.0.0.1 was killed.\n');
    await until('the log has it', () => /inspection\.kill[^\n]*bloomctl-\d+-/.test(trio.nodes.b.log()));
    await until('the room is gone', async () => (await trio.run(['room', 'victim'])).code === 65);
  });

  test('undoes a change of an actor on the node, even when the tool is killed', async () => {
    const suspending = trio.start(['suspend', 'rooms/kitchen', '--for', '10s', '--yes']);
    await until('it is suspended', async () => (await faultsOf('a')).length === 1);
    suspending.child.kill('SIGKILL');
    const [fault] = await faultsOf('a');
    expect(fault).toMatchObject({ kind: 'suspend', tool: expect.stringMatching(/ as bloomctl-\d+-/) });
    expect((await trio.document('actor', 'rooms/kitchen')).status).toBe('suspended');
    await until('it is undone', async () => (await faultsOf('a')).length === 0, { limitMs: 15_000 });
    expect((await trio.document('actor', 'rooms/kitchen')).status).not.toBe('suspended');
    expect((await trio.request('b', 'GET /room/kitchen')).status).toBe(200);
  });

  test('undoes a change of a link on the node, even when the tool is killed', async () => {
    const cutting = trio.start(['link', 'cut', 'b', 'c', '--for', '10s', '--yes']);
    await until('it is cut', async () => (await trio.count('b')) === 2);
    cutting.child.kill('SIGKILL');
    const check = await trio.run(['check', 'cluster', '--nodes', '3']);
    expect([check.code, check.out]).toEqual([
      1,
      'no  3 of 3 nodes, but b@127.0.0.1 and c@127.0.0.1 do not see each other\n',
    ]);
    const { out } = await trio.run(['cluster']);
    expect(out).toContain('partial view: b and c do not see each other');
    expect(out).toMatch(/b->c is cut deliberately for/);
    await until('it is healed', async () => (await counts()).every((count) => count === 3), { limitMs: 20_000 });
    expect((await trio.run(['check', 'cluster', '--nodes', '3'])).code).toBe(0);
  });

  test('ends by itself if it is a log level or a drain', async () => {
    await trio.run(['log-level', 'b', 'debug', '--for', '5s', '--yes']);
    await trio.run(['drain', 'b', '--deadline', '5s', '--yes']);
    expect((await faultsOf('b')).map(({ kind }) => kind).toSorted()).toEqual(['drain', 'log-level']);
    expect((await trio.document('nodes')).nodes.map(({ state }: { state: string }) => state)).toContain('draining');
    await until('both are over', async () => (await faultsOf('b')).length === 0, { limitMs: 20_000 });
    expect((await trio.document('nodes')).nodes.map(({ state }: { state: string }) => state)).toEqual([
      'up',
      'up',
      'up',
    ]);
  });
});

test('returns from drain --wait when the last room has ended, even after a late answer', async () => {
  const local = async (): Promise<string[]> => {
    const { data } = (await (await trio.request('b', 'GET /room')).json()) as { data: { id: string }[] };
    return data.map(({ id }) => id);
  };
  while ((await local()).length === 0) expect((await trio.request('b', 'POST /room')).status).toBe(201);
  const drained = trio.run(['drain', 'b', '--wait', '--yes', '--timeout', '300ms']);
  await until('b drains', async () => (await faultsOf('b')).some(({ kind }) => kind === 'drain'));
  process.kill(trio.nodes.b.pid, 'SIGSTOP');
  // Longer than the second between two polls plus the time limit of an answer.
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  process.kill(trio.nodes.b.pid, 'SIGCONT');
  for (const id of await local()) expect((await trio.request('a', `DELETE /room/${id}`)).status).toBe(204);
  const { code, out } = await drained;
  expect(code).toBe(0);
  expect(out).toMatch(/accepts no new rooms: no deadline, [1-9]/);
  expect((await trio.run(['undrain', 'b', '--yes'])).code).toBe(0);
});

describe('a request', () => {
  test('follows a request through actors and nodes by its id', async () => {
    const { status, headers } = await trio.request('c', 'GET /room/kitchen');
    expect(status).toBe(200);
    const id = headers.get('x-request-id') ?? '';
    expect(id).not.toBe('');
    const ask = async () => {
      const path = await trio.document('path', id);
      if (path.hops.length < 2) throw new Error(JSON.stringify(path));
      return path;
    };
    const { hops } = await until('its hops are known', ask, { limitMs: 30_000 });
    expect(new Set(hops.map(({ node }: { node: string }) => node))).toEqual(new Set([trio.name('c'), trio.name('a')]));
    const what = hops.map((hop: { what: string }) => hop.what);
    expect(what).toEqual(expect.arrayContaining(['GET /room/kitchen', '200']));
    const { out } = await trio.run(['path', id]);
    expect(out).toMatch(/http +GET \/room\/kitchen\n/);
    expect(out).toMatch(/http +200\b/);
  });
});

test('reports a lost node while the others still answer', async () => {
  await trio.nodes.c.kill();
  await until('it is noticed', async () => (await trio.count('a')) === 2);
  const { code, out } = await trio.run(['check', 'cluster', '--nodes', '3']);
  expect(code).toBe(1);
  expect(out).toContain('2 of 3 nodes');
  const { nodes, unreachable } = await trio.document('nodes');
  expect(nodes.length).toBe(2);
  expect(unreachable.map(({ name }: { name: string }) => name)).toEqual([trio.name('c')]);
  const ps = await trio.run(['ps', '--all']);
  expect(ps.code).toBe(0);
  expect(ps.out).toContain('c@127.0.0.1 does not answer');
});
