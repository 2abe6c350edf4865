import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { openActorSystem, type ActorRef, type ActorSystem, type RemoteActors } from '@bloom/actors';
import { silentLog } from '@bloom/log';
import { NotificationBus } from '@bloom/notifications';
import { EventRelay } from './event-relay.js';

let system: ActorSystem;
let members: string[];
/** Protocol of all members. */
let protocol: number;
let member: ActorRef<MemberProtocol>;
let relay: EventRelay;
let bus: NotificationBus;
let wanted: boolean;
/** The member confirms that it has all events. */
let confirms: boolean;
/** Times that the member was asked for that. */
let flushes: number;
/** Events that reached the member. */
let arrived: object[];

type MemberProtocol = Record<
  'interest' | 'notification' | 'metrics' | 'recording' | 'flush',
  (message: object) => void | boolean
>;

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
  wanted = false;
  arrived = [];
  confirms = true;
  flushes = 0;
  system = openActorSystem({ log: silentLog });
  members = ['b@x'];
  protocol = 2;
  const arrives = (_state: null, message: object): void => void arrived.push(message);
  member = system.spawn<MemberProtocol, null>(
    {
      kind: 'member',
      init: () => null,
      handlers: {
        interest: arrives,
        notification: arrives,
        metrics: arrives,
        recording: arrives,
        flush: () => {
          flushes += 1;
          return confirms;
        },
      },
    },
    { mailbox: { limit: 2 } },
  );
  bus = new NotificationBus(silentLog);
  relay = new EventRelay({ system, remote: remote(), self: 'a@x', bus, wants: () => wanted, log: silentLog });
});
afterEach(async () => {
  relay.close();
  await system.close();
  jest.useRealTimers();
});

function remote(): RemoteActors {
  const node = { nodes: () => members, speaks: (_node: string, version: number) => version <= protocol };

  return { node, remote: () => member } as unknown as RemoteActors;
}

const declare = (node: string): void =>
  void system.cast('events_node', { type: 'interest', node, metrics: true } as never);

test('keeps a member interested until it leaves', async () => {
  declare('b@x');
  await system.idle();
  expect(relay.metricsWanted).toBe(true);
  members = [];
  relay.memberLeft('b@x');
  expect(relay.metricsWanted).toBe(false);
});

test('knows whether every member has all events', async () => {
  bus.publish({ type: 'roomCreated', roomId: 'r' });
  expect(await relay.delivered()).toBe(true);
  expect(arrived).toHaveLength(1);
  confirms = false;
  expect(await relay.delivered()).toBe(false);
  await system.stop(member);
  expect(await relay.delivered()).toBe(false);
  members = [];
  expect(await relay.delivered()).toBe(true);
});

test('does not ask a member that has joined with an earlier release, which cannot confirm anything', async () => {
  protocol = 1;
  expect(await relay.delivered()).toBe(false);
  expect(flushes).toBe(0);
});

test('does not wait for a member that is known to be silent', async () => {
  relay.close();
  const silent = new Set<string>();
  const silentMembers = {
    has: (node: string) => silent.has(node),
    guard: <T>(_node: string, call: () => Promise<T>) =>
      silent.size > 0 ? Promise.reject<T>(new Error('b@x does not answer')) : call(),
  };
  const others = openActorSystem({ log: silentLog });
  relay = new EventRelay({
    system: others,
    remote: remote(),
    self: 'a@x',
    bus,
    wants: () => wanted,
    log: silentLog,
    silentMembers,
  });
  fill();
  for (let i = 0; i < 3; i += 1) bus.publish({ type: 'roomCreated', roomId: `r${i}` });
  expect(await relay.delivered()).toBe(false);
  silent.add('b@x');
  expect(await relay.delivered()).toBe(true);
  await others.close();
});

test('does not wait for a member whose link has refused events', async () => {
  for (let i = 0; i < 3; i += 1) bus.publish({ type: 'roomCreated', roomId: `r${i}` });
  expect(await relay.delivered()).toBe(false);
});

test('keeps relaying after malformed messages from a member', async () => {
  for (let i = 0; i < 10; i += 1) {
    system.cast('events_node', { type: 'metrics', report: '{' } as never);
    await system.idle();
  }
  expect(system.whereis('events_node')).toBeDefined();
});

test('does not count a member as interested that leaves before its interest is handled', async () => {
  declare('b@x');
  members = [];
  relay.memberLeft('b@x');
  await system.idle();
  expect(relay.metricsWanted).toBe(false);
});

const created = (roomId: string) => expect.objectContaining({ notification: { type: 'roomCreated', roomId } });
/** Lets the member accept two messages, and no more until the returned function is called, as if its link were full. */
function fill(): () => void {
  system.suspend(member);
  return () => system.resume(member);
}

test('sends events that a full link refuses in order, before any later one', async () => {
  const empty = fill();
  for (const roomId of ['1', '2', '3', '4', '5']) bus.publish({ type: 'roomCreated', roomId });
  empty();
  await system.idle();
  bus.publish({ type: 'roomCreated', roomId: '6' });
  for (let i = 0; i < 3; i += 1) {
    jest.advanceTimersByTime(250);
    await system.idle();
  }
  expect(arrived).toEqual(['1', '2', '3', '4', '5', '6'].map(created));
  bus.publish({ type: 'roomCreated', roomId: '7' });
  await system.idle();
  expect(arrived.at(-1)).toEqual(created('7'));
});

test('sends the news of a recording that a full link refuses once there is room', async () => {
  system.cast('events_node', { type: 'interest', node: 'b@x', metrics: false, recording: true } as never);
  await system.idle();
  const empty = fill();
  bus.publish({ type: 'roomCreated', roomId: '1' });
  bus.publish({ type: 'roomCreated', roomId: '2' });
  const type = 'recordingUploaded' as const;
  const news = { type, roomId: 'r', componentId: 'c', prefix: 'p', files: ['a.ogg'] };
  bus.publish(news);
  empty();
  await system.idle();
  jest.advanceTimersByTime(250);
  await system.idle();
  expect(arrived).toEqual([created('1'), created('2'), { type: 'recording', notification: news }]);
});

test('drops the oldest events when 10,000 wait, and all of them when their member leaves', async () => {
  const empty = fill();
  for (let i = 0; i <= 10_002; i += 1) bus.publish({ type: 'roomCreated', roomId: `${i}` });
  empty();
  await system.idle();
  jest.advanceTimersByTime(250);
  await system.idle();
  expect(arrived).toEqual(['0', '1', '3', '4'].map(created));
  relay.memberLeft('b@x');
  jest.advanceTimersByTime(1_000);
  await system.idle();
  expect(arrived).toHaveLength(4);
});

test('sends the interest when it changes, and repeats it while it lasts', async () => {
  wanted = true;
  jest.advanceTimersByTime(1_000);
  await system.idle();
  const interest = expect.objectContaining({ node: 'a@x', metrics: true, data: true });
  expect(arrived).toEqual([interest]);

  jest.advanceTimersByTime(20_000);
  await system.idle();
  expect(arrived).toEqual([interest, interest, interest]);

  wanted = false;
  jest.advanceTimersByTime(30_000);
  await system.idle();
  expect(arrived).toHaveLength(4);
  expect(arrived.at(-1)).toMatchObject({ metrics: false, data: false });
});

test('sends a report as text to a member that accepts it, and unchanged to an earlier version', async () => {
  const report = { 'room_id=kitchen': { 'endpoint_id=ann': { 'endpoint.metadata': [1, 2] } } };
  const published: unknown[] = [];
  bus.subscribe((envelope) => {
    if (envelope.kind === 'metrics' && envelope.source === 'remote') published.push(envelope.report);
  });
  declare('b@x');
  await system.idle();
  bus.publishMetrics(report);
  system.cast('events_node', { type: 'interest', node: 'b@x', metrics: true, text: true } as never);
  await system.idle();
  bus.publishMetrics(report);
  await system.idle();
  expect(arrived).toMatchObject([{ report }, { report: JSON.stringify(report) }]);
  for (const message of arrived as { report: unknown }[]) {
    // Text is parsed at the border, before it reaches the actor.
    const { report: sent } = message;
    system.cast('events_node', {
      ...message,
      report: typeof sent === 'string' ? JSON.parse(sent) : sent,
    } as never);
  }
  await system.idle();
  expect(published).toEqual([report, report]);
});

test('sends the news of a recording to members with subscribers, and takes theirs', async () => {
  const type = 'recordingUploaded' as const;
  const news = { type, roomId: 'r', componentId: 'c', prefix: 'p', files: ['a.ogg'] };
  const published: unknown[] = [];
  bus.subscribe((envelope) => {
    if (envelope.kind === 'recording' && envelope.source === 'remote') published.push(envelope.notification);
  });
  bus.publish(news);
  await system.idle();
  expect(arrived).toEqual([]);
  system.cast('events_node', { type: 'interest', node: 'b@x', metrics: false, recording: true } as never);
  await system.idle();
  bus.publish(news);
  await system.idle();
  expect(arrived).toEqual([{ type: 'recording', notification: news }]);
  system.cast('events_node', { type: 'recording', notification: news } as never);
  await system.idle();
  expect(published).toEqual([news]);
});
