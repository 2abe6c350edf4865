import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { OriginRule } from '@bloom/config';
import { foreignCaller } from './public-token.js';
import { TestApi, TOKEN } from './testing/api.js';

const any: OriginRule = { kind: 'any' };
const list: OriginRule = { kind: 'list', origins: ['//app.example.com'] };
const rule = {
  publicHost: 'media.example.com:5002/bloom',
  checkOrigin: any,
  addresses: () => ['192.168.1.7', 'fe80::7'],
};

const isRefused = (headers: IncomingHttpHeaders, checkOrigin: OriginRule = any): boolean =>
  foreignCaller({ headers } as IncomingMessage, { ...rule, checkOrigin }) !== undefined;

describe('with the public token', () => {
  test.each([
    ['http://localhost:3000'],
    ['http://app.localhost'],
    ['http://127.0.0.1:5173'],
    ['https://127.8.9.1'],
    ['http://[::1]:8080'],
    ['http://192.168.1.7:3000'],
    ['http://[fe80::7]'],
    ['https://media.example.com'],
    ['https://MEDIA.example.com:8443'],
  ])('lets a page from %s call the API', (origin) => {
    expect(isRefused({ host: '127.0.0.1:5002', origin })).toBe(false);
  });

  test.each([
    ['https://evil.example'],
    ['http://192.168.1.8'],
    ['http://localhost.evil.example'],
    ['http://127.0.0.1.evil.example'],
    ['http://media.example.com.evil.example'],
    ['http://evil.example/media.example.com'],
    ['http://media.example.com@evil.example'],
    ['chrome-extension://abc'],
    ['file://'],
    ['null'],
    [''],
  ])('does not let a page from %j call the API', (origin) => {
    expect(isRefused({ host: '127.0.0.1:5002', origin })).toBe(true);
  });

  test('lets a page listed in JF_CHECK_ORIGIN call the API', () => {
    const headers = { host: '127.0.0.1:5002', origin: 'https://app.example.com' };
    expect(isRefused(headers)).toBe(true);
    expect(isRefused(headers, list)).toBe(false);
  });

  test('lets a page served by this node call the API, under any address and name without a dot', () => {
    expect(isRefused({ host: '10.0.0.9:5002', origin: 'http://10.0.0.9:5002' })).toBe(false);
    expect(isRefused({ host: 'laptop:5002', origin: 'http://laptop:5002' })).toBe(false);
    expect(isRefused({ host: 'laptop:5002', origin: 'http://laptop:6000' })).toBe(true);
  });

  test.each([
    ['cross-site', true],
    ['same-site', false],
    ['same-origin', false],
    ['none', false],
  ])('decides about a request without Origin from %s, refused: %s', (site, refused) => {
    expect(isRefused({ host: '127.0.0.1', 'sec-fetch-site': site })).toBe(refused);
  });

  test.each([
    ['127.0.0.1:5002', false],
    ['192.0.2.1', false],
    ['[::1]:5002', false],
    ['localhost:5002', false],
    ['bloom:5002', false],
    ['media.example.com', false],
    ['media.example.com.:443', false],
    ['evil.example', true],
    ['127.0.0.1.evil.example:5002', true],
    ['media.example.com.evil.example', true],
  ])('decides about a request to the host %s, refused: %s', (host, refused) => {
    expect(isRefused({ host })).toBe(refused);
  });

  test('refuses a page whose own name resolves to this node, although it calls its own origin', () => {
    expect(isRefused({ host: 'evil.example:5002', origin: 'http://evil.example:5002' })).toBe(true);
  });
});

describe('the API', () => {
  let api: TestApi | undefined;
  afterEach(async () => {
    await api?.close();
    api = undefined;
  });
  const start = async (apiToken: string) => {
    const settings = { apiToken, publicMediaFiles: false, describe: false, version: '1.2.3', publicToken: rule };
    api = await TestApi.open({ settings });
    return api;
  };
  const foreign = { origin: 'https://evil.example' };

  test('answers 403 with a sentence to a foreign page with the public token', async () => {
    const { status, body } = await (await start('development')).call('GET', '/room', {
      headers: foreign,
      authorization: 'Bearer development',
    });
    expect(status).toBe(403);
    expect(body.errors).toContain('"https://evil.example"');
  });

  test("checks for a wrong token (401) first, and does not restrict peers' tokens", async () => {
    const { call } = bound(await start('development'));
    expect((await call('GET', '/room', { headers: foreign, authorization: 'Bearer wrong' })).status).toBe(401);
    expect((await call('DELETE', '/whip/x', { headers: foreign, authorization: 'Bearer wrong' })).status).toBe(401);
  });

  test('accepts a private token from any page', async () => {
    expect((await (await start(TOKEN)).call('GET', '/room', { headers: foreign })).status).toBe(200);
  });
});

function bound(api: TestApi): { call: TestApi['call'] } {
  return { call: (...given) => api.call(...given) };
}
