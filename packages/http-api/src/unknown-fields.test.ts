import { createLogger } from '@bloom/log';
import { fuzzRuns } from '@bloom/time/testing';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { TestApi, TOKEN } from './testing/api.js';

const HEADER = 'x-bloom-unknown-fields';
const settings = { apiToken: TOKEN, publicMediaFiles: false, describe: false, version: '1.0.0' } as const;

let lines: string[];
let api: TestApi;

beforeEach(async () => {
  lines = [];
  api = await TestApi.open({ log: createLogger({ level: 'debug', sink: (line) => lines.push(line) }) });
});

afterEach(() => api.close());

async function namedFor(body: unknown, path = '/room'): Promise<string | undefined> {
  return (await api.call('POST', path, { body })).headers[HEADER];
}

const about = (): string[] => lines.filter((line) => line.includes('http.unknown_fields'));

test('ignores an unknown field and names it, with a similar known one', async () => {
  const answer = await api.call('POST', '/room', { body: { maxpeers: 3, colour: 'red' } });
  expect(answer.status).toBe(201);
  expect(answer.body.data.room.config.maxPeers).toBeNull();
  expect(answer.headers[HEADER]).toBe('maxpeers (maxPeers?), colour');
});

test('lets pages of other origins read the names', async () => {
  const { headers } = await api.call('POST', '/room', { body: { colour: 'red' } });
  expect(headers['access-control-expose-headers']).toBe(HEADER);
});

test('leaves the response unchanged for known fields, null or not', async () => {
  const { headers } = await api.call('POST', '/room', { body: { maxPeers: 3, videoCodec: null } });
  expect(headers).not.toHaveProperty(HEADER);
  expect(headers).not.toHaveProperty('access-control-expose-headers');
  expect(about()).toEqual([]);
});

test('compares fields of nested options with those of the chosen kind', async () => {
  const { room } = (await api.call('POST', '/room', { body: { videoCodec: 'h264' } })).body.data;
  const path = `/room/${room.id}/component`;
  expect(await namedFor({ type: 'hls', options: { persistant: true } }, path)).toBe('persistant (persistent?)');
  expect(await namedFor({ type: 'file', options: { filePath: 'a.ogg', persistent: true } }, path)).toBe('persistent');
});

test('allows any field in metadata', async () => {
  const { room } = (await api.call('POST', '/room')).body.data;
  const options = { metadata: { colour: 'red' }, permissions: { publsh: true } };
  expect(await namedFor({ type: 'webrtc', options }, `/room/${room.id}/peer`)).toBe('publsh (publish?)');
});

test('names unknown fields of a refused request too, because the misspelt field may be the reason', async () => {
  const { room } = (await api.call('POST', '/room')).body.data;
  const answer = await api.call('POST', `/room/${room.id}/peer`, { body: { typ: 'webrtc' } });
  expect(answer.status).toBe(400);
  expect(answer.headers[HEADER]).toBe('typ (type?)');
});

test('names nothing in a request with a wrong token', async () => {
  const answer = await api.call('POST', '/room', { body: { colour: 1 }, authorization: 'Bearer wrong' });
  expect(answer.headers).not.toHaveProperty(HEADER);
});

test('does not name fields that only later Fishjam SDKs know', async () => {
  expect(await namedFor({ roomType: 'conference', public: false })).toBeUndefined();
});

test('logs them in one debug line, or a warning in the development profile', async () => {
  await namedFor({ colour: 1 });
  expect(about()).toHaveLength(1);
  expect(about()[0]).toContain('[debug] http.unknown_fields operation=create_room fields=colour');
  await api.close();
  api = await TestApi.open({
    settings: { ...settings, warnOfUnknownFields: true },
    log: createLogger({ level: 'info', sink: (line) => lines.push(line) }),
  });
  await namedFor({ colour: 1 });
  await namedFor({ colour: 2 });
  expect(about().filter((line) => line.includes('[warning]'))).toHaveLength(1);
});

test('sends at most ten names, and none that could break the header or the log', async () => {
  const body = Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`f${i}`, i]));
  expect((await namedFor(body))?.split(', ')).toHaveLength(10);
  const odd = ['a\r\nx-evil: 1', 'ü', 'a b', '', 'x'.repeat(41), 'a,b', '<script>', 'a\0'];
  expect(await namedFor(Object.fromEntries(odd.map((name) => [name, 1])))).toBeUndefined();
  expect(await namedFor(JSON.parse('{"__proto__": 1, "constructor": 2}'))).toBe('__proto__, constructor');
});

test('looks at only the first thousand fields of a body', async () => {
  const oddNames = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`-${i}`, 1]));
  expect(await namedFor({ ...oddNames(999), colour: 1 })).toBe('colour');
  expect(await namedFor({ ...oddNames(1_000), colour: 1 })).toBeUndefined();
});

test('answers any JSON object with well-formed names', async () => {
  const { room } = (await api.call('POST', '/room')).body.data;
  const path = `/room/${room.id}/component`;
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (body) => {
      const answer = await api.raw('POST', path, {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ type: 'hls', ...body }),
      });
      expect(String(answer.headers[HEADER] ?? 'a')).toMatch(
        /^\w{1,40}(?: \(\w+\?\))?(?:, \w{1,40}(?: \(\w+\?\))?){0,9}$/,
      );
    }),
    { numRuns: fuzzRuns(100) },
  );
});
