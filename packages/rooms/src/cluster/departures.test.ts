// When and how often rooms are offered to other nodes. moving.test.ts moves them.
import { describe, expect, test } from '@jest/globals';
import { type LogFields, silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import { Fence } from '../fence.js';
import { defaultRoomConfig } from '../room-service.js';
import type { Carry, RoomRef } from '../room/room-messages.js';
import type { RoomSnapshot } from '../room/room-snapshot.js';
import type { ClusterPort } from './cluster-port.js';
import { Departures } from './departures.js';
import type { OwnedRoom } from './directory.js';

const ROOM = { path: '/rooms/kitchen', key: '2' };
const SNAPSHOT = { config: { ...defaultRoomConfig, roomId: 'kitchen' }, peers: [], invitations: [], peerlessMs: null };

/** A node with the room `kitchen`, which others answer with `offerAnswer` and then with `takeAnswer`. */
function start({
  offerAnswer = { refused: 'full' } as object,
  takeAnswer = null as object | null | 'silence',
  isSettled = true,
  here = { held: 0, ids: ['kitchen'] },
  hasReceiver = false,
  canMoveWebhooks = true,
  components = [] as NonNullable<RoomSnapshot['components']>,
  protocol = 3,
  isBusy = false,
  isReleased = true,
  frozenMs = 0,
} = {}) {
  const clock = new ManualClock();
  let spoken = protocol;
  let takerSays = takeAnswer;
  /** What b announces. */
  const elsewhere: OwnedRoom[] = [];
  /** When the room was frozen. */
  const freezes: number[] = [];
  const given: ReturnType<Carry['given']>[] = [];
  /** What a busy room does once its move has been given up. */
  const late: Carry[] = [];
  /** What became of the room's webhooks. */
  const told: string[] = [];
  /** How long the taker may take to answer an offer. */
  const timeouts: number[] = [];
  const fence = new Fence(silentLog);
  const fenced = new Set<string>();
  fence.watcher = { changed: () => undefined, isFenced: (roomId) => fenced.has(roomId) };
  /** Members that the latest place was not to be on, if there are others. */
  let avoided: ReadonlySet<string> = new Set();
  /** Members that announce the room. */
  const announcers = new Set<string>();
  const lines: string[] = [];
  const note = (event: string, fields?: LogFields): void => void lines.push(`${event} ${JSON.stringify(fields)}`);
  const log = { ...silentLog, info: note, warn: (event: string, fields?: LogFields) => note(`warn ${event}`, fields) };
  const port = {
    self: 'a',
    members: () => ['b'],
    speaks: (_node: string, version: number) => version <= spoken,
    releaseOf: () => '1.2.3',
    call: async (
      _node: string,
      { type, snapshot = '' }: { type: string; snapshot?: string },
      { timeoutMs }: { timeoutMs: number },
    ) => {
      if (type === 'offerRoom') timeouts.push(timeoutMs);
      if (type === 'offerRoom')
        told.push(`offer ${(JSON.parse(snapshot) as RoomSnapshot).webhooks?.waiting.length ?? 0}`);
      if (type === 'offerRoom') return offerAnswer;
      if (takerSays === 'silence') throw new Error('b does not answer');
      return takerSays;
    },
    cast: (_node: string, { type, event }: { type: string; event?: string }) => {
      told.push(event === undefined ? type : `${type} ${event}`);
      return true;
    },
  } as unknown as ClusterPort;
  const departures = new Departures({
    port,
    host: {
      roomIds: () => here.ids,
      load: () => ({ forwardedTracks: 0, rooms: here.held + here.ids.length }),
      whyStays: () => undefined,
      roomRef: (roomId) => (here.ids.includes(roomId) ? ({ path: '/rooms/kitchen', key: '1' } as RoomRef) : undefined),
      fence,
      giveRoom: async (_roomId: string, carry: Carry) => {
        if (isBusy) {
          late.push(carry);
          throw new Error('the room does not answer');
        }
        freezes.push(clock.now());
        const stays = await carry.offer({ ...SNAPSHOT, components }, frozenMs);
        if (stays !== null) return stays;
        const taken = carry.given();
        given.push(taken);
        taken?.catch(() => {});
        return null;
      },
    },
    placement: {
      reserveElsewhere: async (_roomId, { avoided: nodes = new Set<string>(), former = [] } = {}) => {
        avoided = nodes;
        return former.includes('b') ? undefined : { node: 'b', reservation: 'r' };
      },
      reserveOn: async (_roomId: string, node: string) => ({ node, reservation: 'r' }),
    },
    owned: (roomId) => ({ roomId, createdAt: 1, ref: { path: '/rooms/kitchen', key: '1' } as RoomRef }),
    directory: {
      given: () => undefined,
      knows: (node) => announcers.has(node),
      announced: (_node, roomId) => elsewhere.find((room) => room.roomId === roomId),
    },
    withdraw: () => undefined,
    release: async () => isReleased,
    restore: () => undefined,
    settled: async () => isSettled,
    webhooks: {
      settled: () => new Promise((done) => (hasReceiver ? undefined : done())),
      pause: () => {
        told.push('pause');
        return canMoveWebhooks ? { waiting: [Buffer.from('event')], inFlight: true } : undefined;
      },
      resume: () => void told.push('resume'),
      give: async () => {
        told.push('give');
        return Buffer.from('failed');
      },
    },
    newId: () => `move ${freezes.length}`,
    log,
    clock,
  });
  const speak = (version: number): void => void (spoken = version);
  const deny = (): void => void (takerSays = null);
  const seen = { speak, deny, elsewhere, freezes, given, late, told, timeouts, lines, avoided: () => [...avoided] };

  return { clock, departures, fence, fenced, announcers, ...seen };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('freezes a room that is refused again and again after longer and longer pauses', async () => {
  const { clock, departures, freezes } = start();
  const order = departures.moveAll(30_000);
  await turn();
  await clock.advanceAsync(31_000, turn);
  await order;
  expect(freezes).toEqual([0, 1_000, 3_000, 7_000, 15_000, 23_000]);
});

test('makes the clients of a room wait no longer if the room has taken its time to freeze', async () => {
  const { departures, timeouts } = start({ frozenMs: 300 });
  await departures.move('kitchen');
  expect(timeouts).toEqual([400]);
});

test('keeps a room that a standby may take over from the time of its offer on', async () => {
  const { departures, fence, freezes, given, told } = start({ offerAnswer: { accepted: true } });
  fence.watcher = { changed: () => undefined, isFenced: () => freezes.length > 0 };
  await departures.move('kitchen');
  expect(given).toEqual([undefined]);
  expect(told).toContain('keepRoom');
});

test('knows where it has just given a room', async () => {
  const { departures } = start({ offerAnswer: { accepted: true }, takeAnswer: 'silence' });
  expect(departures.takerOf('kitchen')).toBeUndefined();
  await departures.move('kitchen');
  expect([departures.takerOf('kitchen'), departures.takerOf('hall')]).toEqual(['b', undefined]);
});

test.each([
  ['a live stream', 'streams', { stream: { track: 'main', codecs: '', next: 1, segments: [] } }],
  ['a telephone call', 'calls', { call: { number: '1' } }],
])('offers %s only to a node that knows how %s move', async (_what, many, progress) => {
  const component = { id: 'h', type: 'any', options: {}, properties: {}, origins: [], tracks: [], progress };
  const components = [component] as unknown as NonNullable<RoomSnapshot['components']>;
  const offerAnswer = { accepted: true };
  const { departures, avoided } = start({ components, offerAnswer, protocol: 2 });
  expect(await departures.move('kitchen')).toBe(`b of release 1.2.3 does not know how ${many} move`);
  await departures.move('kitchen');
  expect(avoided()).toEqual(['b']);
  const newer = start({ components, offerAnswer, protocol: 3 });
  expect(await newer.departures.move('kitchen')).toBeNull();
});

describe('the webhooks of a room that moves while its receiver is slow', () => {
  const taken = { offerAnswer: { accepted: true }, takeAnswer: { path: '/rooms/kitchen', key: '2' } };

  test('move with it, and the taker hears what became of the one in flight', async () => {
    const { departures, told } = start({ ...taken, hasReceiver: true });
    expect(await departures.move('kitchen')).toBeNull();
    await turn();
    const event = Buffer.from('failed').toString('base64');
    expect(told).toEqual(['pause', 'offer 1', 'give', `webhooksOver ${event}`]);
  });

  test('go on where they are if the room is refused, or lost on its way', async () => {
    const refused = start({ hasReceiver: true });
    await refused.departures.move('kitchen');
    expect(refused.told).toEqual(['pause', 'offer 1', 'resume', 'keepRoom']);
    const lost = start({ ...taken, takeAnswer: null, hasReceiver: true });
    await lost.departures.move('kitchen');
    await turn();
    expect(lost.told).toEqual(['pause', 'offer 1', 'resume']);
  });

  test('are not held by a room that freezes after its move has been given up', async () => {
    const { departures, late, told } = start({ hasReceiver: true, isBusy: true });
    expect(await departures.move('kitchen')).toBe('Error: the room does not answer');
    expect(await late[0]?.offer({ ...SNAPSHOT, components: [] }, 0)).toBe('it was busy for too long');
    expect(told).toEqual(['resume', 'keepRoom']);
  });

  test('keep it where it is if they cannot move, or not to a member of an older release', async () => {
    for (const options of [{ canMoveWebhooks: false }, { protocol: 2 }]) {
      const { clock, departures } = start({ ...taken, ...options, hasReceiver: true });
      const moving = departures.move('kitchen');
      await clock.advanceAsync(1_000, turn);
      expect(await moving).toBe('its events have not arrived everywhere');
    }
  });

  test('are not waited for by a room whose receiver has them all, in a cluster with an older release', async () => {
    const { departures, told } = start({ ...taken, protocol: 2 });
    expect(await departures.move('kitchen')).toBeNull();
    await turn();
    expect(told).toEqual(['offer 0']);
  });

  test('are awaited by a node that ends', async () => {
    const { clock, departures, told } = start({ ...taken, hasReceiver: true });
    await departures.move('kitchen');
    const closing = departures.close();
    await clock.advanceAsync(200, turn);
    await closing;
    expect(told).toContain('give');
  });
});

describe('a room that a standby may have taken over', () => {
  const taken = { offerAnswer: { accepted: true }, takeAnswer: { path: '/rooms/kitchen', key: '2' } };

  test('stays', async () => {
    const { departures, fenced, freezes } = start(taken);
    fenced.add('kitchen');
    expect(await departures.move('kitchen')).toBe('this node is cut off from most of its cluster');
    expect(freezes).toEqual([]);
  });

  test('stays until the events of that time have been published', async () => {
    const { departures, fence, fenced } = start(taken);
    fenced.add('kitchen');
    fence.pass({ type: 'peerAdded', roomId: 'kitchen', peerId: 'p' }, () => undefined);
    fenced.clear();
    expect(await departures.move('kitchen')).toBe('this node is cut off from most of its cluster');
    fence.release('kitchen');
    expect(await departures.move('kitchen')).toBeNull();
  });

  test('stays if its standby does not let go of it, and its place is free again', async () => {
    const { departures, freezes, told } = start({ ...taken, isReleased: false });
    expect(await departures.move('kitchen')).toBe('this node is cut off from most of its cluster');
    expect([freezes, told]).toEqual([[], ['keepRoom']]);
  });

  test('is not given away if the node was stopped while it was offered', async () => {
    const { departures, fence, given } = start(taken);
    let asked = 0;
    fence.watcher = { changed: () => undefined, isFenced: () => (asked += 1) > 1 };
    expect(await departures.move('kitchen')).not.toBeNull();
    expect(given).toEqual([undefined]);
  });

  test('has ended here once it has been given up, although it is still announced', async () => {
    const { departures } = start({ ...taken, here: { held: 0, ids: [] } });
    expect(await departures.move('kitchen')).toBe('it has ended');
  });
});

test('moves a room that was held for its giver when the order came', async () => {
  const here = { held: 1, ids: [] as string[] };
  const { clock, departures, freezes } = start({ here });
  const order = departures.moveAll(30_000);
  await turn();
  expect(freezes).toEqual([]);
  Object.assign(here, { held: 0, ids: ['kitchen'] });
  await clock.advanceAsync(1_000, turn);
  expect(freezes).toEqual([1_000]);
  here.ids = [];
  await clock.advanceAsync(1_000, turn);
  await order;
});

test('avoids a node that has refused a room for 10 s', async () => {
  const { clock, departures, avoided } = start();
  await departures.move('kitchen');
  expect(avoided()).toEqual([]);
  clock.advance(9_999);
  await departures.move('kitchen');
  expect(avoided()).toEqual(['b']);
  clock.advance(10_000);
  await departures.move('kitchen');
  expect(avoided()).toEqual([]);
});

test('sends no room back to a node that still passes messages on to it', async () => {
  const { departures, announcers } = start({ offerAnswer: { accepted: true }, takeAnswer: ROOM });
  announcers.add('b');
  const reason = 'no other node can take it; it can go back to b 10 s after it left';
  expect(await departures.moveTo('kitchen', null)).toEqual({ outcome: 'stays', reason });
  announcers.clear();
  expect(await departures.moveTo('kitchen', null)).toMatchObject({ outcome: 'moved', node: 'b' });
});

test('logs once why a room stays that an operator moves', async () => {
  const { departures, lines } = start();
  await departures.moveTo('kitchen', 'b');
  expect(lines).toEqual(['warn room.stays {"roomId":"kitchen","reason":"full"}']);
});

test('logs once that a taker has not confirmed for 1.5 s that it has the room', async () => {
  const { clock, departures, lines } = start({ offerAnswer: { accepted: true }, takeAnswer: 'silence' });
  await departures.move('kitchen');
  await clock.advanceAsync(1_400, turn);
  expect(lines).toEqual([]);
  await clock.advanceAsync(10_000, turn);
  expect(lines).toEqual(['warn room.unconfirmed {"roomId":"kitchen","node":"b"}']);
});

test.each([
  ['an order', false, { fix: 'order the drain with its moves again; the end of the drain moves nothing' }],
  ['a node that ends', true, {}],
])('warns that rooms are left at the end of the moves of %s', async (_what, thenEnd, fix) => {
  const { clock, departures, lines } = start();
  const order = departures.moveAll(2_000, thenEnd);
  await clock.advanceAsync(3_000, turn);
  await order;
  expect(lines.at(-1)).toBe(`warn node.moves_over ${JSON.stringify({ rooms: 1, ...fix })}`);
});

test('leaves a room to a taker that is cut off for 10 minutes, because it may run there', async () => {
  const { clock, departures, given } = start({ offerAnswer: { accepted: true }, takeAnswer: 'silence' });
  await departures.move('kitchen');
  await clock.advanceAsync(599_000, turn);
  expect(await Promise.race([given[0], 'waits'])).toBe('waits');
  await clock.advanceAsync(2_500, turn);
  expect(await given[0]).toBeUndefined();
});

test('reports a room as lost to a taker that does not know it', async () => {
  const { departures, given } = start({ offerAnswer: { accepted: true }, takeAnswer: null });
  await departures.move('kitchen');
  await expect(given[0]).rejects.toThrow('room kitchen was lost on its way to b');
});

describe('a room whose taker was cut off, and then knows nothing of it', () => {
  const started = async () => {
    const node = start({ offerAnswer: { accepted: true }, takeAnswer: 'silence' });
    await node.departures.move('kitchen');
    await node.clock.advanceAsync(11_000, turn);
    node.deny();
    return node;
  };
  const announced = (epoch: number): OwnedRoom => ({ roomId: 'kitchen', createdAt: 1, epoch, ref: ROOM as RoomRef });

  test('is where a member announces it within 20 s: it has gone on from its taker', async () => {
    const { clock, given, elsewhere } = await started();
    await clock.advanceAsync(19_000, turn);
    elsewhere.push(announced(2));
    await clock.advanceAsync(400, turn);
    expect(await given[0]).toEqual(ROOM);
  });

  test('is lost if nobody does', async () => {
    const { clock, given } = await started();
    await clock.advanceAsync(19_000, turn);
    expect(await Promise.race([given[0], 'waits'])).toBe('waits');
    await clock.advanceAsync(2_000, turn);
    await expect(given[0]).rejects.toThrow('room kitchen was lost on its way to b');
  });

  test('is lost although somebody announces it as it was before', async () => {
    const { clock, given, elsewhere } = await started();
    elsewhere.push(announced(0));
    await clock.advanceAsync(21_000, turn);
    await expect(given[0]).rejects.toThrow('room kitchen was lost on its way to b');
  });
});

test('reports a room as lost to a taker that has started again with a release that knows no moves', async () => {
  const { clock, departures, given, speak } = start({ offerAnswer: { accepted: true }, takeAnswer: 'silence' });
  await departures.move('kitchen');
  speak(1);
  await clock.advanceAsync(200, turn);
  await expect(given[0]).rejects.toThrow('room kitchen was lost on its way to b');
});

test('does not freeze a room whose events have not arrived everywhere', async () => {
  const { departures, freezes } = start({ isSettled: false });
  expect(await departures.move('kitchen')).toBe('its events have not arrived everywhere');
  expect(freezes).toEqual([]);
});

test('moves a room whose events have not arrived in the last 2 s before it would end', async () => {
  const { clock, departures, freezes, given } = start({
    offerAnswer: { accepted: true },
    takeAnswer: { path: '/rooms/kitchen', key: '2' },
    isSettled: false,
  });
  const staying = departures.moveAll(8_000);
  await turn();
  await clock.advanceAsync(9_000, turn);
  await staying;
  expect(given).toEqual([]);
  const ending = departures.moveAll(8_000, true);
  await turn();
  const since = clock.now();
  await clock.advanceAsync(6_000, turn);
  departures.stop();
  await clock.advanceAsync(1_000, turn);
  await ending;
  expect([freezes[0], given.length]).toEqual([since + 6_000, 1]);
});

test.each([
  ['runs', { path: '/rooms/kitchen', key: '2' }, 'moved'],
  ['is lost', null, 'lost'],
  ['is not heard of for 1.5 s', 'silence' as const, 'unconfirmed'],
])('tells an operator that the room that was given %s', async (_what, takeAnswer, outcome) => {
  const { clock, departures } = start({ offerAnswer: { accepted: true }, takeAnswer });
  const moving = departures.moveTo('kitchen', 'b');
  await turn();
  await clock.advanceAsync(1_500, turn);
  expect(await moving).toMatchObject({ outcome, node: 'b' });
});
