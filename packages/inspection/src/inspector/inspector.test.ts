import { expect, test } from '@jest/globals';
import { ActorError, type ActorSystem, openActorSystem } from '@bloom/actors';
import { silentLog } from '@bloom/log';
import { type Clock, systemClock } from '@bloom/time';
import { ManualClock, until } from '@bloom/time/testing';
import type { Environment } from './environment.js';
import { Inspector } from './inspector.js';
import { Redactor } from './redact.js';

const environment = (system: ActorSystem, clock: Clock): Environment => ({
  self: 'a@h',
  system,
  log: silentLog,
  redactor: new Redactor((text) => text),
  clock,
  members: () => [],
  remote: () => undefined as never,
  knowsActor: () => true,
  knowsRoom: () => true,
  ownerOf: async () => undefined,
});

test('gives up an answer by the clock of its node', async () => {
  const system = openActorSystem({ log: silentLog });
  const clock = new ManualClock();
  const inspector = new Inspector({
    environment: environment(system, clock),
    mode: 'full',
    answers: { hello: () => new Promise(() => undefined) },
    producers: {},
  });
  const reply = inspector.ask({ v: 1, tool: 't', node: null, timeoutMs: 4_000, request: { kind: 'hello' } });
  await until(() => clock.pending === 1);
  clock.advance(4_000);
  expect(await reply).toMatchObject({ ok: false, error: { code: 'TIMEOUT' } });
  await system.close();
});

/** Asks a node to move a room of another, b@h, and expects an answer that denies neither of them. */
async function expectNothingUnknown(system: ActorSystem, members: readonly string[]): Promise<void> {
  const inspector = new Inspector({
    environment: {
      ...environment(system, systemClock),
      members: () => [...members],
      knowsRoom: () => false,
      ownerOf: async () => 'b@h',
    },
    mode: 'full',
    answers: {},
    producers: {},
  });
  const request = { kind: 'room-move', room: 'kitchen' };
  expect(await inspector.ask({ v: 1, tool: 't', node: null, timeoutMs: 4_000, request })).toMatchObject({
    ok: false,
    error: { code: 'TIMEOUT' },
  });
}

test('does not say that something is unknown because the link to its node was lost', async () => {
  const system = openActorSystem({ log: silentLog });
  const lost = Object.assign(Object.create(system) as ActorSystem, {
    call: () => Promise.reject(new ActorError('NO_CONNECTION', 'the link is lost')),
  });
  await expectNothingUnknown(lost, ['b@h']);
  await system.close();
});

test('does not say that a node is unknown whose link was lost while the owner of a room was looked for', async () => {
  const system = openActorSystem({ log: silentLog });
  await expectNothingUnknown(system, []);
  await system.close();
});

test('asks the owner of the next room of an id once the former one has ended', async () => {
  const system = openActorSystem({ log: silentLog });
  const owners = ['b@h', 'c@h'];
  const asked: string[] = [];
  const members = Object.assign(Object.create(system) as ActorSystem, {
    call: async (node: unknown) => {
      asked.push(String(node));
      const error = { code: 'UNKNOWN_ROOM', message: 'b@h has no room kitchen' };
      return asked.length === 1 ? { ok: false, error } : { ok: true, answer: 'moved' };
    },
  });
  const inspector = new Inspector({
    environment: {
      ...environment(members, systemClock),
      members: () => ['b@h', 'c@h'],
      remote: ((node: string) => node) as never,
      knowsRoom: () => false,
      ownerOf: async () => owners.shift(),
    },
    mode: 'full',
    answers: {},
    producers: {},
  });
  const request = { kind: 'room-move', room: 'kitchen' };
  const reply = await inspector.ask({ v: 1, tool: 't', node: null, timeoutMs: 4_000, request });
  expect({ asked, reply }).toMatchObject({ asked: ['b@h', 'c@h'], reply: { ok: true } });
  await system.close();
});

test('opens at most 32 streams, however many are requested at once', async () => {
  const system = openActorSystem({ log: silentLog });
  const sink = system.spawn({ kind: 'sink', init: () => null, handlers: { items: () => true, ended: () => {} } });
  const inspector = new Inspector({
    environment: environment(system, systemClock),
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
