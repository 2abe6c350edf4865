import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { testMachine } from '../testing/machine.js';
import { type ServerContext, writeContexts } from './contexts.js';
import { findTarget, type TargetOptions } from './target.js';

let home: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'bloomctl-target-'));
  writeFileSync(join(home, 'token'), 'of-the-file\n', { mode: 0o600 });
  const byName = new Map<string, ServerContext>([
    ['lab', { url: 'http://lab.example/', tokenFile: join(home, 'token') }],
    ['prod', { url: 'https://prod.example/media', tokenCommand: 'echo of-the-command' }],
    ['plain', { url: 'https://plain.example/' }],
    ['silent', { url: 'https://a.example/', tokenCommand: 'echo of-the-command; exit 3' }],
    ['loud', { url: 'https://a.example/', tokenCommand: 'yes of-the-command' }],
    ['missing', { url: 'https://a.example/', tokenCommand: '/nonexistent/of-the-command' }],
  ]);
  await writeContexts({ current: 'lab', byName }, machineOf());
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

function machineOf(env: Record<string, string> = {}) {
  return testMachine({ home, env, uid: statSync(home).uid });
}

async function found(options: TargetOptions, env: Record<string, string> = {}) {
  const { url, token } = await findTarget(options, machineOf(env));

  return [url.href, token.value];
}

describe('the server that a command asks', () => {
  test('is the context in use, if nothing else names one', async () => {
    expect(await found({})).toEqual(['http://lab.example/', 'of-the-file']);
  });

  test('is that of the options, then of the environment, then the context in use', async () => {
    const env = { BLOOM_URL: 'https://env.example', BLOOM_CONTEXT: 'prod', BLOOM_TOKEN: 'of-the-environment' };
    expect(await found({ url: 'https://option.example' }, env)).toEqual([
      'https://option.example/',
      'of-the-environment',
    ]);
    expect(await found({ context: 'lab' }, env)).toEqual(['http://lab.example/', 'of-the-file']);
    expect(await found({}, env)).toEqual(['https://env.example/', 'of-the-environment']);
    expect(await found({}, { ...env, BLOOM_URL: '' })).toEqual(['https://prod.example/media/', 'of-the-command']);
  });

  test('is never sent the token of a context if its address comes from elsewhere', async () => {
    await expect(found({ url: 'https://option.example' })).rejects.toMatchObject({ exit: 78 });
    await expect(found({}, { BLOOM_URL: 'https://env.example' })).rejects.toMatchObject({ exit: 78 });
  });

  test('takes the token of a file before that of its context, and the environment for a context without one', async () => {
    expect((await found({ context: 'prod', tokenFile: join(home, 'token') }))[1]).toBe('of-the-file');
    expect((await found({ context: 'plain' }, { BLOOM_TOKEN: 'of-the-environment' }))[1]).toBe('of-the-environment');
    await expect(found({ context: 'plain' })).rejects.toMatchObject({ exit: 78 });
  });

  test('is a node on this machine if no server is named anywhere, with the public token of development', async () => {
    const nobody = testMachine({ env: { JF_PORT: '7000' } });
    const { url, token, isGuess } = await findTarget({}, nobody);
    expect([url.href, token.value, isGuess]).toEqual(['http://127.0.0.1:7000/', 'development', true]);
    const container = testMachine({ env: { JF_SERVER_API_TOKEN: 'of-the-node' } });
    expect((await findTarget({}, container)).token.value).toBe('of-the-node');
    await expect(findTarget({}, testMachine({ env: { JF_PORT: '0' } }))).rejects.toMatchObject({ exit: 78 });
  });

  test('is sent no token for another server if no server is named anywhere', async () => {
    const env = { BLOOM_TOKEN: 'of-another-server' };
    expect((await findTarget({}, testMachine({ env }))).token.value).toBe('development');
    const container = testMachine({ env: { ...env, FJ_SERVER_API_TOKEN: 'of-the-node' } });
    expect((await findTarget({}, container)).token.value).toBe('of-the-node');
    await expect(findTarget({ tokenFile: join(home, 'token') }, testMachine({ env }))).rejects.toMatchObject({
      exit: 64,
      advice: expect.stringContaining('--url'),
    });
  });

  test('is named once', async () => {
    await expect(found({ url: 'https://a.example', context: 'lab' })).rejects.toMatchObject({ exit: 64 });
    await expect(found({ context: 'other' })).rejects.toMatchObject({
      exit: 78,
      advice: 'there are: lab, prod, plain, silent, loud, missing',
    });
  });
});

test.each([
  ['silent', 'ended with 3'],
  ['loud', 'prints more than'],
  ['missing', 'ended with 127'],
])('names what is wrong with the command of context %s, without its text or output', async (context, why) => {
  const failure = await found({ context }).catch((error: unknown) => error);
  expect(failure).toMatchObject({ exit: 78, message: expect.stringContaining(why) });
  expect(JSON.stringify(failure) + String(failure)).not.toContain('of-the-command');
});

test('refuses the token of a guest, which opens no API', async () => {
  const guest = `${Buffer.from('{"roomId":"hall"}').toString('base64url')}.c2lnbmF0dXJl`;
  const failure = await found({ context: 'plain' }, { BLOOM_TOKEN: guest }).catch((error: unknown) => error);
  expect(failure).toMatchObject({ exit: 77, advice: expect.stringContaining('an invitation') });
  expect(JSON.stringify(failure)).not.toContain(guest);
});
