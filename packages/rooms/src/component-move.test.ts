// Components of a room that leaves one node and is continued by another.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '@bloom/log';
import { until } from '@bloom/time/testing';
import { defaultRoomConfig } from './room-service.js';
import type { Component, ComponentHost, ComponentKind, ComponentProgress } from './room/component-kind.js';
import { moveKitchen, testNode, videoTrack, type TestNode } from './testing/index.js';

let from: TestNode;
let to: TestNode;
beforeEach(() => {
  from = testNode();
  to = testNode();
});
afterEach(() => Promise.all([from.close(), to.close()]));

const open = () => from.host.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });

const move = () => moveKitchen(from, to);

const RECORDER: Component = { progress: () => ({}), close: async () => undefined };

describe('a component of a room that moves', () => {
  let hosts: ComponentHost[];
  let closed: string[];
  const kind = (changes: Partial<ComponentKind> = {}, part: Partial<Component> = {}): ComponentKind => ({
    type: 'file',
    limitPerRoom: null,
    prepare: async () => ({
      properties: { shown: 'new' },
      subscribeMode: 'manual',
      start: (host) => {
        hosts.push(host);
        return {
          progress: () => ({ positionMs: 7 }),
          close: async (moved) => void closed.push(`${host.componentId} ${moved}`),
          ...part,
        };
      },
    }),
    ...changes,
  });
  const restart = async (here: ComponentKind, there: ComponentKind | undefined = here): Promise<void> => {
    await Promise.all([from.close(), to.close()]);
    from = testNode({ componentKinds: [here] });
    to = testNode({ componentKinds: there === undefined ? [] : [there] });
    await open();
  };
  beforeEach(() => {
    hosts = [];
    closed = [];
  });

  test('is started there with its options and progress, and ended here', async () => {
    await restart(kind());
    const { id } = await from.rooms.addComponent('kitchen', 'file', { secret: 'x' });
    const ann = await from.join('kitchen');
    await from.rooms.subscribeComponent('kitchen', id, [ann.id]);
    hosts[0]?.report({ do: 'setProperties', properties: { shown: 'changed' } });
    hosts[0]?.report({ do: 'publish', tracks: [videoTrack('t')] });
    await from.system.idle();
    const before = from.host.view('kitchen');
    from.news();
    const snapshot = await move();
    expect(snapshot.components?.[0]?.options).toEqual({ secret: 'x' });
    expect(closed).toEqual([`${id} true`]);
    expect(hosts[1]).toMatchObject({
      componentId: id,
      resumed: { tracks: [{ trackId: 't', kind: 'video', metadata: null }], progress: { positionMs: 7 } },
    });
    expect(to.host.view('kitchen')).toEqual(before);
    expect(to.host.componentState('kitchen', id)?.origins).toEqual([ann.id]);
    hosts[1]?.report({ do: 'publish', tracks: [videoTrack('t')] });
    await to.system.idle();
    expect([...from.news(), ...to.news()]).toEqual([]);
    expect(to.host.view('kitchen')).toEqual(before);
  });

  test('does not make a track that comes back appear twice', async () => {
    await restart(kind({ prepare: async () => ({ properties: {}, subscribeMode: 'auto', start: () => RECORDER }) }));
    await from.rooms.addComponent('kitchen', 'file', {});
    const ann = await from.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t')] });
    await move();
    const back = await to.connect(ann.token);
    await back.act({ type: 'join', metadata: null }, { type: 'publish', tracks: [videoTrack('t')] });
    expect(to.host.view('kitchen')?.peers[0]?.tracks.map(({ id }) => id)).toEqual(['t']);
  });

  test('is told when a move begins, and when it is given up, even if one of them fails at that', async () => {
    const told: string[] = [];
    const freeze = (frozen: boolean): void => {
      told.push(`${frozen}`);
      if (told.length === 1) throw new Error('a bug');
    };
    const progress = (): ComponentProgress => {
      told.push('progress');
      return {};
    };
    await restart(kind({}, { freeze, progress, close: async () => void told.push('close') }));
    await from.rooms.addComponent('kitchen', 'file', {});
    await from.rooms.addComponent('kitchen', 'file', {});
    const refused = { offer: async () => 'no', given: () => undefined, over: () => undefined };
    expect(await from.host.giveRoom('kitchen', refused)).toBe('no');
    expect(told.splice(0)).toEqual(['true', 'true', 'progress', 'progress', 'false', 'false']);
    await move();
    expect(told).toEqual(['true', 'true', 'progress', 'progress', 'close', 'close']);
  });

  test('may finish what its viewers wait for before it says how far it has come', async () => {
    const frozen: (() => void)[] = [];
    let isReady = false;
    const freeze = (isFrozen: boolean): Promise<void> | undefined =>
      isFrozen ? new Promise((done) => void frozen.push(done)) : undefined;
    const progress = (): ComponentProgress => ({ positionMs: isReady ? 8 : 7 });
    await restart(kind({}, { freeze, progress }));
    await from.rooms.addComponent('kitchen', 'file', {});
    const moved = move();
    await until(() => frozen.length > 0);
    isReady = true;
    frozen[0]?.();
    expect((await moved).components?.[0]?.progress).toEqual({ positionMs: 8 });
  });

  describe('that fails when it is told', () => {
    let failsAt: boolean;
    let lines: string[];
    beforeEach(async () => {
      lines = [];
      const freeze = (frozen: boolean): void => {
        if (frozen === failsAt) throw new Error('a bug');
      };
      await restart(kind({}, { freeze }));
      await from.close();
      const log = createLogger({ level: 'error', sink: (line) => void lines.push(line) });
      from = testNode({ componentKinds: [kind({}, { freeze })], log });
      await open();
    });
    const freezes = () => lines.filter((line) => line.includes('component.freeze_failed'));

    test('of the move goes with its room, and nobody notices but the log', async () => {
      failsAt = true;
      const { id } = await from.rooms.addComponent('kitchen', 'file', {});
      const ann = await from.join('kitchen');
      from.news();
      await move();
      await to.system.idle();
      expect(to.host.view('kitchen')).toMatchObject({ components: [{ id }], peers: [{ id: ann.id }] });
      expect([...from.news(), ...to.news()]).toEqual([]);
      expect(freezes()).toEqual([expect.stringContaining(id)]);
      expect(freezes()[0]).toMatch(/a bug/);
    });

    test('that its room stays has crashed, because it might stay frozen', async () => {
      failsAt = false;
      const { id } = await from.rooms.addComponent('kitchen', 'file', {});
      from.news();
      const refused = { offer: async () => 'no', given: () => undefined, over: () => undefined };
      expect(await from.host.giveRoom('kitchen', refused)).toBe('no');
      await from.system.idle();
      expect(from.news()).toEqual([`componentCrashed ${id}`]);
      expect(closed).toEqual([`${id} false`]);
      expect(freezes()).toHaveLength(1);
    });
  });

  test('is prepared with its progress on the node that the room leaves', async () => {
    const formers: unknown[] = [];
    const prepare: ComponentKind['prepare'] = async (_options, _room, former) => {
      formers.push(former);
      return { properties: {}, subscribeMode: null, start: () => ({ close: async () => undefined }) };
    };
    await restart(kind(), kind({ prepare }));
    await from.rooms.addComponent('kitchen', 'file', {});
    await move();
    expect(formers).toEqual([{ node: 'from', progress: { positionMs: 7 } }]);
  });

  test('loses the tracks that it does not publish again within 10 s', async () => {
    await restart(kind());
    const { id } = await from.rooms.addComponent('kitchen', 'file', {});
    hosts[0]?.report({ do: 'publish', tracks: [videoTrack('t')] });
    await from.system.idle();
    await move();
    await to.advance(9.9);
    expect(to.news()).toEqual([]);
    await to.advance(0.2);
    expect(to.news()).toEqual([`trackRemoved ${id}/t`]);
    expect(to.host.view('kitchen')?.components[0]?.tracks).toEqual([]);
  });

  test('has crashed if it does not start there', async () => {
    const prepare: ComponentKind['prepare'] = async () => ({
      properties: {},
      subscribeMode: null,
      start: () => {
        throw new Error('a bug');
      },
    });
    await restart(kind(), kind({ prepare }));
    const { id } = await from.rooms.addComponent('kitchen', 'file', {});
    hosts[0]?.report({ do: 'publish', tracks: [videoTrack('t')] });
    await from.system.idle();
    await move();
    expect(to.news()).toEqual([`trackRemoved ${id}/t`, `componentCrashed ${id}`]);
    expect(to.host.view('kitchen')?.components).toEqual([]);
  });

  test('keeps its room where it is if the other node allows fewer of them, or another codec', async () => {
    await restart(kind(), kind({ limitPerRoom: 1 }));
    await from.rooms.addComponent('kitchen', 'file', {});
    await from.rooms.addComponent('kitchen', 'file', {});
    await expect(move()).rejects.toMatchObject({ code: 'COMPONENT_LIMIT' });
    await restart(kind(), kind({ videoCodecs: () => ['h264'] }));
    await from.rooms.addComponent('kitchen', 'file', {});
    await expect(move()).rejects.toMatchObject({ code: 'INCOMPATIBLE_CODEC' });
    expect(hosts).toHaveLength(3);
  });

  test('keeps its room where it is if it cannot move, or not there', async () => {
    const broken = () => {
      throw new Error('a bug');
    };
    await restart(kind({}, { progress: broken }));
    await from.rooms.addComponent('kitchen', 'file', {});
    expect(from.host.whyStays('kitchen')).toBe('a component cannot say how far it has come: Error: a bug');
    await restart(kind(), kind({ type: 'sip' }));
    await from.rooms.addComponent('kitchen', 'file', {});
    await expect(move()).rejects.toMatchObject({ message: 'Components of type file are disabled' });
    expect(to.host.load().rooms).toBe(0);
  });
});
