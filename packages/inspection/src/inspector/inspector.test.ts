import { expect, test } from '@jest/globals';
import { openActorSystem } from '@bloom/actors';
import { silentLog } from '@bloom/log';
import { systemClock } from '@bloom/time';
import { Inspector } from './inspector.js';
import { Redactor } from './redact.js';

test('opens at most 32 streams, however many are requested at once', async () => {
  const system = openActorSystem({ log: silentLog });
  const sink = system.spawn({ kind: 'sink', init: () => null, handlers: { items: () => true, ended: () => {} } });
  const inspector = new Inspector({
    environment: {
      self: 'a@h',
      system,
      log: silentLog,
      redactor: new Redactor((text) => text),
      clock: systemClock,
      members: () => [],
      remote: () => sink as never,
      knowsActor: () => true,
      knowsRoom: () => true,
      ownerOf: async () => undefined,
    },
    mode: 'full',
    answers: {},
    producers: { 'cluster-events': () => () => {} },
  });
  const replies = await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      inspector.subscribe({
        v: 1,
        tool: 't',
        node: null,
        timeoutMs: 1_000,
        request: { kind: 'cluster-events' },
        stream: `stream-${i}`,
        sink,
      }),
    ),
  );
  expect(replies.filter(({ ok }) => ok).length).toBe(32);
  inspector.close();
  await system.close();
});
