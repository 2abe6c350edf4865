import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import type { Asker } from './asker.js';
import { Context } from './context.js';
import { Output, screenOf } from './output.js';
import { runProgram, VERSION } from './program.js';
import { duration, timeout, whole } from './values.js';
import { testMachine } from './testing/machine.js';

async function run(args: string[], fields: Parameters<typeof testMachine>[0] = {}) {
  const machine = testMachine(fields);
  return { exit: await runProgram(args, machine), ...machine.printed };
}

describe('command line', () => {
  test('prints help to stdout with 0, and errors to stderr with 64', async () => {
    const help = await run(['--help']);
    expect(help.exit).toBe(0);
    expect(help.err).toBe('');
    for (const word of ['doctor', 'top', 'placement', 'Exit codes', '--cookie-file']) expect(help.out).toContain(word);
    expect(await run(['--version'])).toEqual({ exit: 0, out: `${VERSION}\n`, err: '' });
    for (const args of [
      [],
      ['nonsense'],
      ['nodes', '--nonsense'],
      ['kill'],
      ['cluster', 'nonsense'],
      ['top', '--sort', 'x'],
    ]) {
      const { exit, out, err } = await run(args);
      expect([args, exit, out]).toEqual([args, 64, '']);
      expect(err).not.toBe('');
    }
  });

  test('names an unknown command below one that works alone, and what there is', async () => {
    const { exit, err } = await run(['rooms', 'creat']);
    expect(exit).toBe(64);
    expect(err).toContain("unknown command 'creat' of rooms, which has: list, create, move, delete");
    expect((await run(['cluster', 'event', '--json'])).err).toContain("unknown command 'event' of cluster");
  });

  test('shows times as they are written, as defaults and as limits', async () => {
    expect((await run(['drain', '--help'])).out).toContain('(default: 30s)');
    expect((await run(['invite', 'kitchen', '--ttl', '99d'])).err).toContain('"99d" is not from 1s to 30d.');
  });

  test('does not drain with a time to move that nothing is moved in', async () => {
    const { exit, err } = await run(['drain', 'a@localhost', '--move-timeout', '5s', '--yes']);
    expect([exit, err]).toEqual([64, 'bloomctl: --move-timeout is for rooms that move: add --move\n']);
  });

  test('asks for the API token where no other is accepted, and makes no invitation for nobody', async () => {
    const remote = await run(['rooms', 'list', '--url', 'http://127.0.0.1:1']);
    expect(remote.err).toContain('this needs the API token of the server\n');
    expect((await run(['invite', 'kitchen', '--uses', '0'])).exit).toBe(64);
  });

  test('distinguishes a wrong environment from a wrong command', async () => {
    const { exit, err } = await run(['nodes'], { env: { ERL_EPMD_PORT: 'x' } });
    expect(exit).toBe(78);
    expect(err).toBe('bloomctl: ERL_EPMD_PORT is not a port: x\n');
    expect((await run(['nodes', '--cookie-file', '/nonexistent/cookie'])).exit).toBe(78);
    expect((await run(['nodes', '--node', 'a b@c', '--cookie', 'x'])).exit).toBe(64);
    expect((await run(['--dump', '/nonexistent/dump', 'nodes'])).exit).toBe(64);
  });

  test('also ends a failure with a document if documents were requested', async () => {
    const { exit, out, err } = await run(['names', '127.0.0.1', '--mapper-port', '1', '--json']);
    expect(exit).toBe(69);
    expect(JSON.parse(out)).toEqual({
      kind: 'error',
      v: 1,
      exit: 69,
      message: 'no port mapper answers on 127.0.0.1:1',
    });
    expect(err).toContain('no port mapper answers');
  });

  test.each([
    ['20s', 20_000],
    ['1.5s', 1_500],
    ['500ms', 500],
    ['5m', 300_000],
    ['30min', 1_800_000],
    ['1h', 3_600_000],
  ])('parses %s as %d ms', (text, ms) => expect(duration(text)).toBe(ms));

  test.each(['', '5', 's', '-5s', '5 s', '5y', 'Infinitys'])('rejects %j as a duration', (text) => {
    expect(() => duration(text)).toThrow('is not a duration');
  });

  test.each(['0s', '61s', '2m'])('rejects %j as a time limit for a node', (text) => {
    expect(() => timeout(text)).toThrow('not from 1ms to 1m');
    expect(timeout('1m')).toBe(60_000);
  });

  test.each(['', '-1', '1.5', '11', 'x', '0x5'])('rejects %j as a whole number from 0 to 10', (text) => {
    expect(() => whole(0, 10)(text)).toThrow('is not an integer');
  });
});

test('prints the version of the package', () => {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'));
  expect(VERSION).toBe(version);
});

describe('output', () => {
  const stream = (isTTY: boolean, columns?: number) => ({ write: () => true, isTTY, columns });

  test('colours and cuts output only on terminals', () => {
    expect(screenOf(stream(true, 100), {}, {})).toEqual({ colour: true, width: 100 });
    expect(screenOf(stream(true), { TERM: 'dumb' }, {})).toEqual({ colour: false, width: 80 });
    expect(screenOf(stream(true, 100), { NO_COLOR: '1' }, {})).toEqual({ colour: false, width: 100 });
    expect(screenOf(stream(true, 100), { NO_COLOR: '' }, { color: false })).toEqual({ colour: false, width: 100 });
    expect(screenOf(stream(true, 0), { NO_COLOR: '1' }, {})).toEqual({ colour: false, width: 80 });
    expect(screenOf(stream(false), {}, {})).toEqual({ colour: false, width: Infinity });
    expect(screenOf(stream(false), { COLUMNS: '90' }, {})).toEqual({ colour: false, width: 90 });
    expect(screenOf(stream(false), { NO_COLOR: '1' }, { color: true, width: 60 })).toEqual({ colour: true, width: 60 });
  });

  test('prints a document on one line that starts with its kind and version', () => {
    const machine = testMachine();
    new Output(machine, { json: true }).answer('nodes', { asked: 'a@b' }, () => ['text']);
    new Output(machine, {}).answer('nodes', { asked: 'a@b' }, () => ['text']);
    expect(machine.printed).toEqual({ out: '{"kind":"nodes","v":1,"asked":"a@b"}\ntext\n', err: '' });
  });

  test('escapes terminal control characters in a document, which reads back unchanged', () => {
    const machine = testMachine();
    const id = 'a\u001b[2J\u009b1m\u202e\u2028é会';
    new Output(machine, { json: true }).answer('room', { id }, () => []);
    expect(machine.printed.out).toBe('{"kind":"room","v":1,"id":"a\\u001b[2J\\u009b1m\\u202e\\u2028é会"}\n');
    expect(JSON.parse(machine.printed.out).id).toBe(id);
  });
});

describe("completion of a member's name", () => {
  const links = ['sfu-1@b.example', 'sfu-10@c.example', 'sfu-2@d.example', 'sfu-2@e.example'];
  class Scripted extends Context {
    override asker(): Promise<Asker> {
      const answer = { self: 'a@a.example', links: links.map((node) => ({ node, kind: 'member' })) };
      return Promise.resolve({ asked: 'a@a.example', ask: async () => ({ node: 'a@a.example', answer }) } as never);
    }
  }
  const context = new Scripted({ timeout: 1_000 }, testMachine());

  test('adds the host', async () => {
    expect(await context.fullName('sfu-1')).toBe('sfu-1@b.example');
    expect(await context.fullName('z@z')).toBe('z@z');
    await expect(context.fullName('sfu-2')).rejects.toMatchObject({
      exit: 64,
      message: 'sfu-2 can be sfu-2@d.example or sfu-2@e.example; write it in full',
    });
  });

  test('never yields another member, which a command with --yes would then change', async () => {
    links.shift();
    await expect(context.fullName('sfu-1')).rejects.toMatchObject({ exit: 65 });
  });
});

describe('confirmation of a change', () => {
  const terminal = () => Object.assign(new PassThrough(), { isTTY: true });
  async function confirm(typed: string | null, yes?: boolean) {
    const stdin = typed === null ? new PassThrough() : terminal();
    const machine = testMachine({ stdin });
    const context = new Context({ timeout: 1_000 }, machine);
    if (typed === null) stdin.end();
    else stdin.end(typed);
    await context.confirm('a will fail', yes);
    return machine.printed.err;
  }

  test('accepts the option, or yes typed on a terminal', async () => {
    expect(await confirm(null, true)).toBe('');
    expect(await confirm('yes\n')).toBe('a will fail. Type yes to continue: ');
  });

  test.each(['no\n', '\n', 'y\n', ''])('refuses %j', async (typed) => {
    await expect(confirm(typed)).rejects.toMatchObject({ exit: 64, message: 'nothing was changed' });
  });

  test('refuses without a terminal to ask on', async () => {
    await expect(confirm(null)).rejects.toMatchObject({ exit: 64, advice: 'say --yes' });
  });
});
