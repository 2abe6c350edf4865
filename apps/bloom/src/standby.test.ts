// Rooms whose owner is lost go on at their standbys, in virtual time.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { defaultRoomConfig } from '@bloom/rooms';
import type { AttachedPeer } from '@bloom/rooms';
import { nameOf } from './testing/simulation/virtual-node.js';
import {
  both,
  cluster,
  cut,
  heal,
  join,
  node,
  on,
  open,
  owners,
  published,
  silentSocket,
  standbyOf,
  start,
  untilOn,
} from './testing/standby-cluster.js';

describe('a cluster of three nodes with standbys', () => {
  beforeEach(() => start(3));
  afterEach(() => expect(cluster.violations).toEqual([]));

  test('keeps a room whose node has been killed, within a second and without an event', async () => {
    const standby = await open(node('n1'), 'kitchen');
    const before = published.length;
    cluster.kill(node('n1'), true);
    expect(await untilOn(standby, 'kitchen', 1_000)).toBeLessThan(1_000);
    await cluster.world.run(20_000);
    for (const each of cluster.nodes) expect((await on(each, () => each.rooms.getRoom('kitchen'))).id).toBe('kitchen');
    expect(published.slice(before)).toEqual([]);
  });

  describe('whose clients come back before the standby has the room', () => {
    let outcomes: string[];
    let standby: string;
    let tokens: string[];

    beforeEach(async () => {
      outcomes = [];
      standby = await open(node('n1'), 'kitchen');
      const add = () => on(node('n1'), () => node('n1').rooms.addPeer('kitchen', {}));
      tokens = [(await add()).token, (await add()).token];
      await cluster.world.run(500);
    });

    function enter(host: string): void {
      cluster.world.schedule(node(host).machine, 0, () => {
        const attaching = node(host).rooms.attachPeer(tokens.pop() as string, silentSocket());
        const settled = attaching.then((attached) => (typeof attached === 'string' ? attached : 'attached'), String);
        void settled.then((outcome) => outcomes.push(outcome));
      });
    }

    test('lets them wait at any node, from the first moment on', async () => {
      cluster.kill(node('n1'), true);
      for (const host of ['n2', 'n3']) enter(host);
      await untilOn(standby, 'kitchen', 1_000);
      await cluster.world.run(100);
      expect(outcomes).toEqual(['attached', 'attached']);
    });

    test('lets them wait while the standby lacks votes', async () => {
      const third = node(standby === 'n2' ? 'n3' : 'n2');
      cluster.world.freeze(third.machine);
      cluster.kill(node('n1'), true);
      await cluster.world.run(300);
      enter(standby);
      await cluster.world.run(2_500);
      expect(outcomes).toEqual([]);
      cluster.world.thaw(third.machine);
      await untilOn(standby, 'kitchen', 1_500);
      await cluster.world.run(500);
      expect(outcomes).toEqual(['attached']);
    });

    describe('while its owner, started again, knows nothing of the room and a vote is missing', () => {
      const third = (): string => (standby === 'n2' ? 'n3' : 'n2');

      async function restart(lose: () => void): Promise<void> {
        lose();
        cluster.kill(node('n1'), true);
        await cluster.world.run(300);
        cluster.boot('n1');
      }

      function loseLinks(): void {
        cluster.wasSplit = true;
        cut(third());
        cluster.network.reset(third(), standby);
      }

      const ask = (host: string): Promise<unknown> => on(node(host), () => node(host).rooms.getRoom('kitchen'));
      const mayGoOn = { code: 'OWNER_UNREACHABLE', message: 'Room kitchen may go on at another node soon' };

      test('denies the room at no node', async () => {
        await restart(loseLinks);
        await cluster.world.run(4_000);
        for (const host of ['n1', standby]) await expect(ask(host)).rejects.toMatchObject(mayGoOn);
        heal(third());
        await untilOn(standby, 'kitchen', 15_000);
        expect(await ask('n1')).toMatchObject({ id: 'kitchen' });
      });

      test('lets them wait at the new process, from its first moments on', async () => {
        await restart(() => cluster.world.freeze(node(third()).machine));
        await cluster.world.run(20);
        enter('n1');
        await cluster.world.run(1_200);
        enter('n1');
        await cluster.world.run(100);
        expect(outcomes).toEqual([]);
        cluster.world.thaw(node(third()).machine);
        await untilOn(standby, 'kitchen', 1_500);
        await cluster.world.run(500);
        expect(outcomes).toEqual(['attached', 'attached']);
      });

      test('lets nobody wait longer than 5 s at a time', async () => {
        await restart(loseLinks);
        await cluster.world.run(3_000);
        enter('n1');
        await cluster.world.run(4_900);
        expect(outcomes).toEqual([]);
        await cluster.world.run(200);
        expect(outcomes).toEqual(['RoomError: Room kitchen may go on at another node soon']);
      });
    });
  });

  test('denies a room that has been deleted, at every node', async () => {
    const owner = node('n1');
    await open(owner, 'kitchen');
    const asked = on(owner, async () => {
      await owner.rooms.deleteRoom('kitchen');
      return owner.rooms.getRoom('kitchen');
    });
    await expect(asked).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
    for (const each of cluster.nodes)
      await expect(on(each, () => each.rooms.getRoom('kitchen'))).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
  });

  test('keeps a room whose machine has lost its power, within 10 s', async () => {
    const standby = await open(node('n1'), 'kitchen');
    cluster.kill(node('n1'), false);
    expect(await untilOn(standby, 'kitchen', 10_000)).toBeGreaterThanOrEqual(3_000);
  });

  test('gives the room of a frozen node to the standby, and the thawed node gives it up', async () => {
    const standby = await open(node('n1'), 'kitchen');
    cluster.world.freeze(node('n1').machine);
    expect(await untilOn(standby, 'kitchen', 10_000)).toBeGreaterThanOrEqual(4_500);
    await cluster.world.run(3_000);
    cluster.world.thaw(node('n1').machine);
    await cluster.world.run(12_000);
    expect(owners('kitchen')).toEqual([standby]);
    for (const each of cluster.nodes) expect(each.registry.directory.find('kitchen')?.node).toBe(nameOf(standby));
  });

  test('gives up nothing because of a freeze that is over before the standby has won', async () => {
    await open(node('n1'), 'kitchen');
    cluster.world.freeze(node('n1').machine);
    await cluster.world.run(4_000);
    cluster.world.thaw(node('n1').machine);
    await cluster.world.run(10_000);
    expect(owners('kitchen')).toEqual(['n1']);
  });

  test('lets an owner that is cut off refuse changes and hold its events, until it meets the new owner', async () => {
    const owner = node('n1');
    const standby = await open(owner, 'kitchen');
    cluster.wasSplit = true;
    const { token } = await on(owner, () => owner.rooms.addPeer('kitchen', {}));
    await cluster.world.run(500);
    const before = published.length;
    cut('n1');
    await cluster.world.run(2_900);
    await expect(on(owner, () => owner.rooms.addPeer('kitchen', {}))).rejects.toMatchObject({
      code: 'OWNER_UNREACHABLE',
      message: 'Room kitchen is on a node that is cut off from most of its cluster',
    });
    expect((await on(owner, () => owner.rooms.getRoom('kitchen'))).peers).toHaveLength(1);
    const closed: string[] = [];
    const socket = {
      send: () => undefined,
      close: (code: number, reason: string) => void closed.push(`${code} ${reason}`),
      ping: async () => true,
    };
    await on(owner, () => owner.rooms.attachPeer(token, socket));
    await untilOn(standby, 'kitchen', 10_000);
    expect(published.slice(before)).toEqual([]);
    heal('n1');
    await cluster.world.run(20_000);
    expect(owners('kitchen')).toEqual([standby]);
    expect(closed).toEqual(['1012 Room moved']);
    expect(published.slice(before)).toEqual([]);
  });

  test('publishes what an owner has held once it is back before the standby has won', async () => {
    const owner = node('n1');
    await open(owner, 'kitchen');
    cluster.wasSplit = true;
    const { token } = await on(owner, () => owner.rooms.addPeer('kitchen', {}));
    const before = published.length;
    cut('n1');
    await cluster.world.run(2_700);
    await on(owner, () => owner.rooms.attachPeer(token, silentSocket()));
    expect(published.slice(before)).toEqual([]);
    heal('n1');
    await cluster.world.run(3_000);
    expect(owners('kitchen')).toEqual(['n1']);
    expect(published.slice(before)).toEqual(['n1 peerConnected kitchen']);
  });

  test('lets an owner that first meets a member without memory of its vote do nothing', async () => {
    const owner = node('n1');
    const standby = await open(owner, 'kitchen');
    const third = cluster.hosts.find((host) => host !== 'n1' && host !== standby) as string;
    cluster.wasSplit = true;
    cut('n1');
    await untilOn(standby, 'kitchen', 10_000);
    cluster.kill(node(third), true);
    cluster.boot(third);
    await cluster.world.run(20_000);
    both('n1', third, (a, b) => cluster.network.unblock(a, b));
    for (let half = 0; half < 60; half += 1) {
      await expect(on(owner, () => owner.rooms.updateRoom('kitchen', { maxPeers: half + 1 }))).rejects.toMatchObject({
        code: 'OWNER_UNREACHABLE',
      });
      await cluster.world.run(500);
    }
    expect(owner.members).toEqual([nameOf(third)]);
  });

  test('lets every room of a node that stalls while its rooms move away run somewhere', async () => {
    const owner = node('n1');
    const ids = Array.from({ length: 12 }, (_, i) => `room ${i}`);
    for (const roomId of ids) await on(owner, () => owner.host.createRoom({ ...defaultRoomConfig, roomId }));
    await cluster.world.run(3_000);
    cluster.world.schedule(owner.machine, 0, () => void owner.registry.departures.moveAll(60_000));
    await cluster.world.run(30);
    cluster.world.freeze(owner.machine);
    await cluster.world.run(8_000);
    cluster.world.thaw(owner.machine);
    await cluster.world.run(40_000);
    expect(ids.filter((roomId) => owners(roomId).length !== 1)).toEqual([]);
  });

  test('does not let an owner that is cut off move its room', async () => {
    const owner = node('n1');
    await open(owner, 'kitchen');
    cluster.wasSplit = true;
    cut('n1');
    await cluster.world.run(2_700);
    const moved = await on(owner, () => owner.registry.departures.moveTo('kitchen', null));
    expect(moved).toEqual({ outcome: 'stays', reason: 'this node is cut off from most of its cluster' });
  });

  test('goes on with the other rooms of a node while one moves to their standby', async () => {
    const owner = node('n1');
    const ids = ['attic', 'cellar', 'garden', 'hall', 'kitchen', 'study'];
    for (const roomId of ids) await open(owner, roomId);
    await on(owner, () => owner.registry.departures.moveTo('attic', null));
    const [taker = ''] = owners('attic');
    expect(ids.slice(1).map((roomId) => standbyOf(owner, roomId))).toContain(taker);
    for (let passed = 0; passed < 3_000; passed += 100) {
      await cluster.world.run(100);
      expect(ids.filter((roomId) => owner.host.fence.isFenced(roomId))).toEqual([]);
    }
  });

  test('gives a room no standby while it has a LiveKit client', async () => {
    const owner = node('n1');
    await open(owner, 'kitchen');
    const { token } = await on(owner, () => owner.rooms.addPeer('kitchen', {}));
    const peer = (await on(owner, () => owner.rooms.attachPeer(token, silentSocket(), 'livekit'))) as AttachedPeer;
    await cluster.world.run(2_000);
    expect(standbyOf(owner, 'kitchen')).toBeUndefined();
    peer.detach('closed_by_client');
    await cluster.world.run(3_000);
    expect(standbyOf(owner, 'kitchen')).toBeDefined();
  });

  test('chooses another standby within 5 s when one is lost, and the owner goes on meanwhile', async () => {
    const owner = node('n1');
    const standby = await open(owner, 'kitchen');
    cluster.wasSplit = true;
    cut(standby);
    let next: string | undefined;
    for (let half = 0; half < 10; half += 1) {
      await on(owner, () => owner.rooms.updateRoom('kitchen', { maxPeers: half + 1 }));
      await cluster.world.run(500);
      next = standbyOf(owner, 'kitchen');
      if (next !== undefined && next !== standby) break;
    }
    expect([standby, undefined]).not.toContain(next);
    heal(standby);
    await cluster.world.run(10_000);
    cluster.kill(owner, true);
    await untilOn(next as string, 'kitchen', 1_000);
    await cluster.world.run(10_000);
    expect(owners('kitchen')).toEqual([next]);
  });

  test('takes no room over that has been deleted', async () => {
    const owner = node('n1');
    await open(owner, 'kitchen');
    await on(owner, () => owner.rooms.deleteRoom('kitchen'));
    await cluster.world.run(200);
    cluster.kill(owner, true);
    await cluster.world.run(20_000);
    expect(owners('kitchen')).toEqual([]);
  });

  test('grants nobody the id of a room that is about to be taken over', async () => {
    const owner = node('n1');
    const standby = await open(owner, 'kitchen');
    cluster.kill(owner, false);
    await cluster.world.run(1_000);
    for (const each of cluster.nodes)
      await expect(
        on(each, () => each.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' })),
      ).rejects.toMatchObject({ code: 'ROOM_EXISTS' });
    await untilOn(standby, 'kitchen', 15_000);
  });

  test('forgets the end of a room that crashed while its owner was cut off', async () => {
    const owner = node('n1');
    const standby = await open(owner, 'kitchen');
    cluster.wasSplit = true;
    const before = published.length;
    cut('n1');
    await untilOn(standby, 'kitchen', 10_000);
    await on(owner, async () => owner.media.emit.get('kitchen')?.({ type: 'roomFailed', reason: 'worker gone' }));
    await cluster.world.run(1_000);
    expect(owners('kitchen')).toEqual([standby]);
    heal('n1');
    await cluster.world.run(20_000);
    expect(published.slice(before)).toEqual([]);
    expect(owner.registry.directory.find('kitchen')?.node).toBe(nameOf(standby));
    expect(owner.host.fence.holds('kitchen')).toBe(false);
  });

  test('lets an owner that was replaced do nothing, although its standby has started again since', async () => {
    const owner = node('n1');
    const standby = await open(owner, 'kitchen');
    cluster.wasSplit = true;
    cut('n1');
    await untilOn(standby, 'kitchen', 10_000);
    cluster.kill(node(standby), true);
    cluster.boot(standby);
    await cluster.world.run(2_000);
    heal('n1');
    for (let half = 0; half < 60; half += 1) {
      await expect(on(owner, () => owner.rooms.updateRoom('kitchen', { maxPeers: half + 1 }))).rejects.toMatchObject({
        code: 'OWNER_UNREACHABLE',
      });
      await cluster.world.run(500);
    }
  });

  test('refuses a room whose standby is lost with most members until another process has had its name for 11 minutes', async () => {
    const owner = node('n1');
    const standby = await open(owner, 'kitchen');
    const change = (): Promise<unknown> => on(owner, () => owner.rooms.updateRoom('kitchen', { maxPeers: 2 }));
    for (const host of cluster.hosts) if (host !== 'n1') cluster.kill(node(host), false);
    await cluster.world.run(20 * 60_000);
    await expect(change()).rejects.toMatchObject({ code: 'OWNER_UNREACHABLE' });
    cluster.boot(standby);
    await cluster.world.run(10 * 60_000);
    await expect(change()).rejects.toMatchObject({ code: 'OWNER_UNREACHABLE' });
    await cluster.world.run(2 * 60_000);
    await expect(change()).resolves.toMatchObject({ id: 'kitchen' });
  });

  test('ends a room at an owner that was cut off while the room ended at its standby', async () => {
    const owner = node('n1');
    const standby = await open(owner, 'kitchen');
    cluster.wasSplit = true;
    cut('n1');
    await untilOn(standby, 'kitchen', 10_000);
    // What waits on the links is lost with them.
    await cluster.world.run(20_000);
    await on(node(standby), () => node(standby).rooms.deleteRoom('kitchen'));
    const before = published.length;
    heal('n1');
    await cluster.world.run(30_000);
    expect(owners('kitchen')).toEqual([]);
    expect(published.slice(before)).toEqual([]);
  });

  test('keeps the standby of a room that moves from taking it over', async () => {
    const owner = node('n1');
    await open(owner, 'kitchen');
    await on(owner, () => owner.registry.departures.move('kitchen'));
    const [taker] = owners('kitchen') as [string];
    await cluster.world.run(15_000);
    expect(standbyOf(node(taker), 'kitchen')).toBeDefined();
    cluster.kill(owner, true);
    await cluster.world.run(10_000);
    expect(owners('kitchen')).toEqual([taker]);
  });

  test('reports nobody as disconnected who comes back within 10 s', async () => {
    const owner = node('n1');
    const standby = await open(owner, 'kitchen');
    const { token } = await on(owner, () => owner.rooms.addPeer('kitchen', {}));
    const { token: other } = await on(owner, () => owner.rooms.addPeer('kitchen', {}));
    for (const each of [token, other]) {
      await join(owner, each);
    }
    await cluster.world.run(500);
    const before = published.length;
    cluster.kill(owner, true);
    await untilOn(standby, 'kitchen', 1_000);
    const there = node(cluster.hosts.find((host) => host !== 'n1' && host !== standby) as string);
    await join(there, token);
    await cluster.world.run(15_000);
    expect(published.slice(before)).toEqual([`${standby} peerDisconnected kitchen`]);
  });

  test('finds the standby by placement explain', async () => {
    const owner = node('n1');
    const standby = await open(owner, 'kitchen');
    expect(owner.registry.decisions.at(-1)).toMatchObject({
      roomId: 'kitchen',
      policy: 'standby',
      chosen: nameOf(standby),
    });
  });
});

test('keeps the rooms of one of two nodes that is killed, but not of one that is silent', async () => {
  await start(2);
  expect(await open(node('n1'), 'kitchen')).toBe('n2');
  expect(await open(node('n2'), 'hall')).toBe('n1');
  cluster.kill(node('n1'), true);
  await untilOn('n2', 'kitchen', 1_000);
  cluster.boot('n1');
  await cluster.world.run(10_000);
  expect(await standbyOf(node('n2'), 'hall')).toBe('n1');
  cluster.kill(node('n2'), false);
  await cluster.world.run(30_000);
  expect(owners('hall')).toEqual([]);
});

test('lets a room go on at the node that it has just left', async () => {
  await start(2);
  await open(node('n1'), 'kitchen');
  await on(node('n1'), () => node('n1').registry.departures.moveTo('kitchen', null));
  await cluster.world.run(3_000);
  expect(standbyOf(node('n2'), 'kitchen')).toBe('n1');
  cluster.kill(node('n2'), true);
  await untilOn('n1', 'kitchen', 1_000);
  await cluster.world.run(20_000);
  expect(owners('kitchen')).toEqual(['n1']);
  expect((await on(node('n1'), () => node('n1').rooms.getRoom('kitchen'))).id).toBe('kitchen');
});

test('denies no room before it has had time to meet the other members', async () => {
  await start(1);
  const ask = (): Promise<unknown> => on(node('n1'), () => node('n1').rooms.getRoom('kitchen'));
  await expect(ask()).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
  cluster.kill(node('n1'), true);
  cluster.boot('n1');
  await cluster.world.run(20);
  await expect(ask()).rejects.toMatchObject({ code: 'OWNER_UNREACHABLE' });
  await cluster.world.run(2_000);
  await expect(ask()).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
});

test('has no standbys in a cluster of one', async () => {
  await start(1);
  expect(await open(node('n1'), 'kitchen')).toBe('nobody');
  await on(node('n1'), () => node('n1').rooms.updateRoom('kitchen', { maxPeers: 2 }));
});

test.each(['has lost its power', 'hangs'])('sends people who came through others back when a node %s', async (what) => {
  await start(3, { tickTimeMs: 60_000 });
  const owner = node('n1');
  const standby = await open(owner, 'kitchen');
  const closed: Record<string, string> = {};
  for (const host of ['n2', 'n3']) {
    const { token } = await on(owner, () => owner.rooms.addPeer('kitchen', {}));
    // A websocket closes once.
    const close = (code: number, reason: string): void => void (closed[host] ??= `${code} ${reason}`);
    const socket = { ...silentSocket(), close };
    await on(node(host), () => node(host).rooms.attachPeer(token, socket));
  }
  if (what === 'hangs') cluster.world.freeze(owner.machine);
  else cluster.kill(owner, false);
  await untilOn(standby, 'kitchen', 10_000);
  await cluster.world.run(500);
  expect(closed).toEqual({ n2: '1012 Room moved', n3: '1012 Room moved' });
});
