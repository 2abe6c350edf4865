// Which members may speak for which rooms.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ActorError, type ActorErrorCode } from '@bloom/actors';
import { createLogger } from '@bloom/log';
import { NotificationBus } from '@bloom/notifications';
import { ManualClock, until } from '@bloom/time/testing';
import { EventSenders } from './event-senders.js';

let clock: ManualClock;
/** What subscribers have heard. */
let heard: string[];
let lines: string[];
/** Rooms that b has announced. */
let announced: string[];
/** Rooms that another member has. */
let elsewhere: string[];
/** What b answers when it is asked for a room. */
let answers: Promise<object | null>[];
let members: string[];
let senders: EventSenders;

beforeEach(() => {
  clock = new ManualClock();
  [heard, lines, announced, elsewhere, answers, members] = [[], [], [], [], [], ['b']];
  const log = createLogger({ sink: (line) => lines.push(line) });
  const bus = new NotificationBus(log);
  bus.subscribe((envelope) => {
    if (envelope.kind !== 'metrics') heard.push(`${envelope.notification.type} ${envelope.notification.roomId}`);
  });
  const rooms = {
    directory: {
      knewLately: (_node: string, roomId: string) => announced.includes(roomId),
      had: (_node: string, roomId: string) => announced.push(roomId),
      find: (roomId: string) => (elsewhere.includes(roomId) ? { node: 'c' } : undefined),
    },
    lookUp: () => answers.shift() ?? Promise.reject(new Error('nobody asks')),
  };
  const isMember = (node: string): boolean => members.includes(node);
  senders = new EventSenders({ bus, rooms: rooms as never, isMember, log, clock });
});
afterEach(() => senders.close());

const unanswered = (code: ActorErrorCode = 'TIMEOUT'): Promise<null> =>
  Promise.reject(new ActorError(code, 'b does not answer'));
const take = (type: 'roomCreated' | 'roomDeleted' | 'hlsUploaded', roomId: string): void =>
  senders.take('b', { type, roomId });

test('publishes the events of a room that its member has announced', () => {
  announced.push('kitchen');
  take('roomCreated', 'kitchen');
  expect(heard).toEqual(['roomCreated kitchen']);
});

test('asks a member that has not announced the room, and keeps its events in order meanwhile', async () => {
  announced.push('hall');
  answers.push(Promise.resolve({}));
  take('roomDeleted', 'kitchen');
  take('roomDeleted', 'hall');
  expect(heard).toEqual([]);
  await senders.settled('b');
  expect(heard).toEqual(['roomDeleted kitchen', 'roomDeleted hall']);
  expect(senders.settled('b')).toBeUndefined();
});

test('publishes the event of a room whose announcement arrives while its member is asked', async () => {
  let answer: (ref: null) => void = () => undefined;
  answers.push(new Promise((resolve) => (answer = resolve)));
  take('roomDeleted', 'kitchen');
  announced.push('kitchen');
  answer(null);
  await senders.settled('b');
  expect(heard).toEqual(['roomDeleted kitchen']);
});

test('publishes nothing about a room that the member does not have, and logs that once a minute', async () => {
  answers.push(Promise.resolve(null), Promise.resolve(null));
  take('roomDeleted', 'kitchen');
  take('roomDeleted', 'kitchen');
  await senders.settled('b');
  expect(heard).toEqual([]);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('cluster.event_refused');
});

test('publishes all events of a room that began and ended while the link took no announcements', async () => {
  answers.push(Promise.resolve(null));
  take('roomCreated', 'kitchen');
  take('roomDeleted', 'kitchen');
  await senders.settled('b');
  expect(heard).toEqual(['roomCreated kitchen', 'roomDeleted kitchen']);
});

test('does not believe the start of a room that another member has', async () => {
  elsewhere.push('kitchen');
  answers.push(Promise.resolve(null), Promise.resolve(null));
  take('roomCreated', 'kitchen');
  take('roomDeleted', 'kitchen');
  await senders.settled('b');
  expect(heard).toEqual([]);
});

test('keeps at most 10,000 events of a member that does not answer, and few messages of data channels', async () => {
  answers.push(unanswered());
  take('roomDeleted', 'kitchen');
  announced.push('hall');
  const message = { type: 'dataMessage', roomId: 'hall', peerId: 'ann', label: 'chat', to: [], data: 'hi' } as const;
  for (let i = 0; i < 6_000; i += 1) senders.take('b', { ...message, to: [] });
  for (let i = 0; i < 6_000; i += 1) take('roomCreated', 'hall');
  await until(() => clock.pending > 0);
  members = [];
  clock.advance(1_000);
  await senders.settled('b');
  // The event that the member is asked about does not wait.
  expect(heard.filter((line) => line === 'roomCreated hall')).toHaveLength(5_000);
  expect(lines.filter((line) => line.includes('cluster.events_missed'))).toHaveLength(1);
  expect(lines.join()).toContain('events=2000');
});

const TRANSIENT = ['TIMEOUT', 'LINK_FULL', 'TOO_MANY_CALLS', 'NO_CONNECTION'] as const;
test.each(TRANSIENT)('asks again until the member answers, after %s', async (code) => {
  answers.push(unanswered(code), Promise.resolve({}));
  take('roomDeleted', 'kitchen');
  await until(() => clock.pending > 0);
  expect(heard).toEqual([]);
  clock.advance(1_000);
  await senders.settled('b');
  expect(heard).toEqual(['roomDeleted kitchen']);
});

test('drops the event of a member that leaves without having answered', async () => {
  answers.push(unanswered());
  members = [];
  take('roomDeleted', 'kitchen');
  await senders.settled('b');
  expect(heard).toEqual([]);
});

test('publishes the upload of a stream, which may end after its room, without asking', () => {
  take('hlsUploaded', 'kitchen');
  expect(heard).toEqual(['hlsUploaded kitchen']);
});

test('waits for no member once it is closed', async () => {
  answers.push(unanswered());
  take('roomDeleted', 'kitchen');
  await until(() => clock.pending > 0);
  senders.close();
  await senders.settled('b');
  expect([clock.pending, heard]).toEqual([0, []]);
});
