import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { ActorSystem, RemoteActors } from '@bloom/actors';
import { InspectionClient } from './client.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

test('ends a stream with a time limit as lost when its node falls silent', async () => {
  // The node opens the stream and then freezes; its link stays up until it has missed ticks for a minute.
  const reply = { ok: true, v: 1, kind: 'trace', node: 'b@x', answer: { limit: 20, withinMs: 10_000 } };
  const system = { spawn: () => ({}), call: () => Promise.resolve(reply), monitor: () => () => {}, cast: () => true };
  const client = new InspectionClient({
    system: system as unknown as ActorSystem,
    remote: { remote: () => ({}) } as unknown as RemoteActors,
    asked: 'a@x',
    tool: 'test',
  });
  const stream = await client.stream('trace', { match: 'rooms*' }, { onItem: () => {} });
  let reason: string | undefined;
  void stream.ended.then((end) => (reason = `${end.node} ${end.reason}`));
  await jest.advanceTimersByTimeAsync(15_000);
  expect(reason).toBeUndefined();
  await jest.advanceTimersByTimeAsync(2_000);
  expect(reason).toBe('b@x lost');
});

test('does not lose a stream while its last items are still arriving slowly', async () => {
  const reply = { ok: true, v: 1, kind: 'trace', node: 'b@x', answer: { limit: 20, withinMs: 10_000 } };
  let stream = '';
  let tell: (type: 'items' | 'ended', message: object) => void = () => {};
  const system = {
    spawn: ({ handlers }: { handlers: Record<string, (state: null, message: object) => unknown> }) => {
      tell = (type, message) => void handlers[type]!(null, message);
      return {};
    },
    call: (_target: object, message: { stream: string }) => {
      ({ stream } = message);
      return Promise.resolve(reply);
    },
    monitor: () => () => {},
    cast: () => true,
  };
  const client = new InspectionClient({
    system: system as unknown as ActorSystem,
    remote: { remote: () => ({}) } as unknown as RemoteActors,
    asked: 'a@x',
    tool: 'test',
  });
  let items = 0;
  const { ended } = await client.stream('trace', { match: 'rooms*' }, { onItem: () => void items++ });
  let reason: string | undefined;
  void ended.then((end) => (reason = end.reason));
  for (let second = 0; second < 28; second += 4) {
    await jest.advanceTimersByTimeAsync(4_000);
    tell('items', { stream, node: 'b@x', items: [{}] });
  }
  expect(reason).toBeUndefined();
  expect(items).toBe(7);
  tell('ended', { stream, node: 'b@x', reason: 'time', message: null, sent: 7, dropped: 0, costMs: null });
  await jest.advanceTimersByTimeAsync(0);
  expect(reason).toBe('time');
});
