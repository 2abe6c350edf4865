import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createActorSystem, type ActorSystem, type RemoteActors } from '@bloom/actors';
import { silentLog } from '@bloom/log';
import { NotificationBus } from '@bloom/notifications';
import { EventRelay } from './event-relay.js';

let system: ActorSystem;
let members: string[];
let relay: EventRelay;

beforeEach(() => {
  system = createActorSystem({ log: silentLog });
  members = ['b@x'];
  const remote = { node: { nodes: () => members } } as unknown as RemoteActors;
  relay = new EventRelay({ system, remote, self: 'a@x', bus: new NotificationBus(silentLog), wants: () => false });
});
afterEach(async () => {
  relay.close();
  await system.close();
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
