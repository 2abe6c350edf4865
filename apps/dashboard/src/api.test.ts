import { afterEach, expect, jest, test } from '@jest/globals';
import { Api } from './api.js';
import { Problem } from './problem.js';

const before = globalThis.fetch;
afterEach(() => {
  globalThis.fetch = before;
});

test('a connection that is lost in the middle of an answer is a problem like one that is not made', async () => {
  // What polls goes on after a problem only.
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('{"data":['));
    },
    pull(controller) {
      controller.error(new TypeError('network error'));
    },
  });
  globalThis.fetch = () => Promise.resolve(new Response(body));
  const lost: unknown = await new Api('http://node/', 'secret').rooms().catch((error: unknown) => error);
  expect(lost).toBeInstanceOf(Problem);
  expect(lost).toMatchObject({ code: 'server-unreachable' });
});

test('a node that takes a question and never answers counts as out of reach', async () => {
  jest.useFakeTimers();
  const timeout = jest.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
    const limit = new AbortController();
    setTimeout(() => limit.abort(), ms);
    return limit.signal;
  });
  globalThis.fetch = (_url, init) =>
    new Promise((_resolve, reject) => init?.signal?.addEventListener('abort', () => reject(new Error('aborted'))));
  const silent = new Api('http://node/', 'secret').cluster();
  const refused = expect(silent).rejects.toMatchObject({ code: 'server-unreachable' });
  jest.advanceTimersByTime(30_000);
  await refused;
  timeout.mockRestore();
  jest.useRealTimers();
});
