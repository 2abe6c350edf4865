import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { createActorSystem, type ActorSystem, type RemoteActors } from '@bloom/actors';
import { silentLog } from '@bloom/log';
import { NotificationBus } from '@bloom/notifications';
import { EventRelay } from './event-relay.js';

let system: ActorSystem;
let members: string[];
let relay: EventRelay;
let wanted: boolean;
/** What arrived at the member. */
let arrived: object[];

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
  wanted = false;
  arrived = [];
  system = createActorSystem({ log: silentLog });
  members = ['b@x'];
  const member = system.spawn<{ interest: (message: object) => void }, null>({
    kind: 'member',
    init: () => null,
    handlers: { interest: (_state, message) => void arrived.push(message) },
  });
  const remote = { node: { nodes: () => members }, remote: () => member } as unknown as RemoteActors;
  relay = new EventRelay({ system, remote, self: 'a@x', bus: new NotificationBus(silentLog), wants: () => wanted });
});
afterEach(async () => {
  relay.close();
  await system.close();
  jest.useRealTimers();
});

const declare = (node: string): void =>
  void system.cast('events_node', { type: 'interest', node, metrics: true } as never);

test('a member is interested until it is gone', async () => {
  declare('b@x');
  await system.idle();
  expect(relay.metricsWanted).toBe(true);
  members = [];
  relay.memberLeft('b@x');
  expect(relay.metricsWanted).toBe(false);
});

test('a member that goes while its interest waits for its turn is not', async () => {
  declare('b@x');
  members = [];
  relay.memberLeft('b@x');
  await system.idle();
  expect(relay.metricsWanted).toBe(false);
});

test('the interest is sent when it changes, and repeated while it lasts', async () => {
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
