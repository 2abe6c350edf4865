import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '@bloom/log';
import { MAX_ORIGINS } from './component-schemas.js';
import type { Component, ComponentHost, ComponentKind } from './room/component-kind.js';
import { defaultRoomConfig, RoomError, VIDEO_CODECS } from './room-service.js';
import { testNode, videoTrack, type TestNode } from './testing/index.js';

let node: TestNode;
let hosts: ComponentHost[];
let deeds: string[];

/** Creates a kind of component that records how it is used. */
function kind(
  type: ComponentKind['type'],
  more: Partial<ComponentKind> = {},
  part: Partial<Component> = {},
): ComponentKind {
  return {
    type,
    limitPerRoom: null,
    prepare: async (options) => {
      if (options['broken'] === 'bug') throw new TypeError('a bug');
      if (options['filePath'] === undefined) {
        throw new RoomError('MISSING_OPTION', 'Required field "filePath" missing');
      }
      const chosen = options['subscribeMode'] === 'manual' ? 'manual' : 'auto';
      const subscribeMode = type === 'file' ? null : chosen;

      return {
        properties: { filePath: options['filePath'] },
        subscribeMode,
        start: (host) => {
          if (options['broken'] === 'start') throw new Error('cannot start');
          hosts.push(host);
          return { close: async () => void deeds.push(`close ${host.componentId}`), ...part };
        },
      };
    },
    ...more,
  };
}

beforeEach(async () => {
  hosts = [];
  deeds = [];
  node = testNode({
    componentKinds: [
      kind('file'),
      kind('recording', { missingPackage: () => 'a codec', videoCodecs: () => ['h264'], limitPerRoom: 0 }),
      kind(
        'hls',
        { videoCodecs: ({ anyCodec }) => (anyCodec === true ? VIDEO_CODECS : ['h264']), limitPerRoom: 1 },
        {
          subscribe: (origins) => void deeds.push(`take ${origins}`),
          // Pauses once.
          setPaused: (paused) => deeds.push(`pause ${paused}`) < 3,
        },
      ),
      kind(
        'sip',
        {},
        { dial: (number) => void deeds.push(`dial ${number}`), hangUp: () => void deeds.push('hang up') },
      ),
    ],
  });
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen', videoCodec: 'h264' });
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'any' });
  node.news();
});
afterEach(() => node.close());

const options = { filePath: 'a.h264' };

describe('creating components', () => {
  test('checks kind, codec, limit and options in this order', async () => {
    const add = (roomId: string, type: ComponentKind['type'], given: unknown): Promise<unknown> =>
      node.rooms.addComponent(roomId, type, given);

    await expect(add('attic', 'rtsp', 'garbage')).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
    await expect(add('any', 'rtsp', 'garbage')).rejects.toMatchObject({
      code: 'COMPONENT_TYPE_DISABLED',
      message: 'Components of type rtsp are disabled',
    });
    await expect(add('any', 'recording', 'garbage')).rejects.toMatchObject({
      code: 'COMPONENT_TYPE_DISABLED',
      message: 'Components of type recording need a codec, which is not installed',
    });
    await add('kitchen', 'hls', options);
    await expect(add('any', 'hls', 'garbage')).rejects.toMatchObject({
      code: 'INCOMPATIBLE_CODEC',
      message: 'Incompatible video codec enforced in room any',
    });
    await expect(add('kitchen', 'hls', 'garbage')).rejects.toMatchObject({
      code: 'COMPONENT_LIMIT',
      message: 'Reached hls components limit for component in room kitchen',
    });
    await expect(add('any', 'file', [])).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    await expect(add('any', 'file', null)).rejects.toMatchObject({
      code: 'MISSING_OPTION',
      message: 'Required field "filePath" missing',
    });
  });

  test('accepts a component in rooms that have no codec but those it says it takes', async () => {
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'old', videoCodec: 'vp8' });
    const add = async (roomId: string, given: object): Promise<string> =>
      node.rooms.addComponent(roomId, 'hls', { ...options, ...given }).then(
        () => 'added',
        (error: RoomError) => error.code,
      );
    for (const roomId of ['any', 'old']) {
      expect(await add(roomId, {})).toBe('INCOMPATIBLE_CODEC');
      expect(await add(roomId, { anyCodec: 'yes' })).toBe('INCOMPATIBLE_CODEC');
      expect(await add(roomId, { anyCodec: true })).toBe('added');
    }
    expect(await add('kitchen', { anyCodec: true })).toBe('added');
  });

  test('refuses the second of two simultaneous components of a kind limited to one', async () => {
    const outcomes = await Promise.allSettled([
      node.rooms.addComponent('kitchen', 'hls', options),
      node.rooms.addComponent('kitchen', 'hls', options),
    ]);

    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });

  test('fails only the call, not the room, on a bug in a component kind', async () => {
    for (const broken of ['bug', 'start']) {
      await expect(node.rooms.addComponent('any', 'file', { ...options, broken })).rejects.toMatchObject({
        code: 'ROOM_FAILED',
      });
    }
    expect((await node.rooms.getRoom('any')).components).toEqual([]);
  });

  test('shows a new component to its room and peers, without tracks and without a notification', async () => {
    const ann = await node.join('any');
    node.news();
    ann.socket.sent.length = 0;
    const component = await node.rooms.addComponent('any', 'file', options);
    await node.system.idle();

    expect(component).toEqual({ id: component.id, type: 'file', properties: options, tracks: [] });
    expect((await node.rooms.getRoom('any')).components).toEqual([component]);
    expect(ann.socket.sent).toEqual([
      { type: 'endpointAdded', endpoint: { id: component.id, type: 'file', metadata: null, tracks: [] } },
    ]);
    expect(node.news()).toEqual([]);
  });
});

describe('components', () => {
  test("publishes a component's tracks to everyone and removes them when it is deleted", async () => {
    const { id } = await node.rooms.addComponent('any', 'file', options);
    hosts[0]?.report({ do: 'publish', tracks: [videoTrack('t1'), videoTrack('t2')] });
    hosts[0]?.report({ do: 'unpublish', trackIds: ['t2'] });
    const ann = await node.join('any');
    expect(ann.socket.sent).toMatchObject([{ type: 'joined', endpoints: [{ id, tracks: [{ trackId: 't1' }] }] }]);
    node.news();
    await node.rooms.removeComponent('any', id);
    await node.system.idle();

    expect(node.news()).toEqual([`trackRemoved ${id}/t1`]);
    expect(deeds).toEqual([`close ${id}`]);
    expect(ann.socket.sent.at(-1)).toEqual({ type: 'endpointRemoved', endpointId: id });
    await expect(node.rooms.removeComponent('any', id)).rejects.toMatchObject({
      code: 'COMPONENT_NOT_FOUND',
      message: `Component ${id} does not exist`,
    });
  });

  test('removes a component that finishes silently, and announces one that crashes', async () => {
    const [first, second] = [
      await node.rooms.addComponent('any', 'file', options),
      await node.rooms.addComponent('any', 'file', options),
    ];
    hosts[0]?.report({ do: 'publish', tracks: [videoTrack('t1')] });
    hosts[0]?.report({ do: 'finished' });
    hosts[0]?.report({ do: 'crashed', reason: 'too late' });
    hosts[1]?.report({ do: 'publish', tracks: [videoTrack('t2')] });
    hosts[1]?.report({ do: 'crashed', reason: 'aborted' });
    await node.system.idle();

    expect(node.news()).toEqual([
      `trackAdded ${first.id}/t1`,
      `trackRemoved ${first.id}/t1`,
      `trackAdded ${second.id}/t2`,
      `trackRemoved ${second.id}/t2`,
      `componentCrashed ${second.id}`,
    ]);
    expect((await node.rooms.getRoom('any')).components).toEqual([]);
  });

  test('announces a component that becomes playable and shows it as playable', async () => {
    const { id } = await node.rooms.addComponent('kitchen', 'hls', options);
    hosts[0]?.report({ do: 'playable', properties: { playable: true } });
    await node.system.idle();

    expect(node.news()).toEqual([`hlsPlayable ${id}`]);
    expect((await node.rooms.getRoom('kitchen')).components[0]?.properties).toEqual({ playable: true });
  });

  test("removes a component's tracks before its room ends, and closes the component with it", async () => {
    const { id } = await node.rooms.addComponent('any', 'file', options);
    hosts[0]?.report({ do: 'publish', tracks: [videoTrack('t1')] });
    await node.rooms.deleteRoom('any');
    await node.system.idle();

    expect(node.news()).toEqual([`trackAdded ${id}/t1`, `trackRemoved ${id}/t1`, 'roomDeleted']);
    expect(deeds).toEqual([`close ${id}`]);
  });

  test('counts a component as load for each track that it receives', async () => {
    await node.rooms.addComponent('kitchen', 'hls', options);
    const ann = await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1'), videoTrack('t2')] });

    expect(node.host.load().forwardedTracks).toBe(2);
  });
});

describe('receiving components', () => {
  let told: string[];
  let names: unknown[];
  const recording = (): ComponentKind => ({
    type: 'recording',
    limitPerRoom: null,
    prepare: async ({ subscribeMode }) => ({
      properties: {},
      subscribeMode: subscribeMode as 'auto' | 'manual',
      start: () => ({
        receive: (tracks) => {
          if (tracks.some(({ track }) => track.trackId === 'poison')) throw new Error('cannot');
          names.push(...tracks.map(({ originMetadata }) => originMetadata));
          told.push(tracks.map(({ origin, track }) => `${origin}/${track.trackId}`).join());
        },
        close: async () => void told.push('close'),
      }),
    }),
  });
  const player = (): ComponentKind => ({
    type: 'file',
    limitPerRoom: null,
    prepare: async () => ({
      properties: {},
      subscribeMode: null,
      start: (host) => {
        host.report({ do: 'publish', tracks: [videoTrack('film')] });
        return { close: async () => undefined };
      },
    }),
  });
  beforeEach(async () => {
    told = [];
    names = [];
    await node.close();
    node = testNode({ componentKinds: [recording(), player()] });
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'hall' });
  });

  test('sends a component in auto mode every track of the room except its own', async () => {
    const ann = await node.join('hall');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    await node.rooms.addComponent('hall', 'recording', { subscribeMode: 'auto' });
    const film = await node.rooms.addComponent('hall', 'file', {});
    await ann.act({ type: 'publish', tracks: [videoTrack('t2')] });
    await ann.act({ type: 'unpublish', trackIds: ['t1'] });
    await ann.detach();
    await node.rooms.deleteRoom('hall');
    await node.system.idle();

    const own = `${film.id}/film`;
    expect(told.slice(0, 5)).toEqual([
      `${ann.id}/t1`,
      `${ann.id}/t1,${own}`,
      `${ann.id}/t1,${ann.id}/t2,${own}`,
      `${ann.id}/t2,${own}`,
      own,
    ]);
    expect(told.at(-1)).toBe('close');
    expect(told.filter((line) => line === 'close')).toHaveLength(1);
  });

  test('withholds encrypted tracks from a component, and says so in the log', async () => {
    await node.close();
    const log = createLogger({ sink: () => undefined });
    node = testNode({ componentKinds: [recording()], log });
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'hall' });
    await node.rooms.addComponent('hall', 'recording', { subscribeMode: 'auto' });
    const ann = await node.join('hall');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1'), videoTrack('t2', { encrypted: true })] });
    await ann.act({ type: 'publish', tracks: [videoTrack('t3')] });
    await node.system.idle();
    expect(told).toEqual([`${ann.id}/t1`, `${ann.id}/t1,${ann.id}/t3`]);
    const lines = log.recent.last().filter(({ event }) => event === 'component.tracks_encrypted');
    expect(lines.map(({ fields }) => fields)).toMatchObject([{ kind: 'recording', tracks: 1 }]);
  });

  test('tells a component what a peer is called now, and nothing while the metadata stays the same', async () => {
    const ann = await node.join('hall', { name: 'Ann' });
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    await node.rooms.addComponent('hall', 'recording', { subscribeMode: 'auto' });
    await ann.act({ type: 'setMetadata', metadata: { name: 'Ann' } });
    await ann.act({ type: 'setMetadata', metadata: { name: 'Anna' } });
    await node.rooms.updatePeer('hall', ann.id, { metadata: { role: 'host' } });
    await node.rooms.updatePeer('hall', ann.id, { permissions: { publish: true } });
    expect(names).toEqual([{ name: 'Ann' }, { name: 'Anna' }, { peer: { name: 'Anna' }, server: { role: 'host' } }]);
  });

  test('sends a component in manual mode nothing until origins are chosen, known or not yet', async () => {
    const ann = await node.join('hall');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    const { id } = await node.rooms.addComponent('hall', 'recording', { subscribeMode: 'manual' });
    const film = await node.rooms.addComponent('hall', 'file', {});
    expect(told).toEqual([]);
    await node.rooms.subscribeComponent('hall', id, ['somebody', film.id]);
    await node.rooms.subscribeComponent('hall', id, [ann.id]);
    expect(told).toEqual([`${film.id}/film`, `${ann.id}/t1,${film.id}/film`]);
  });

  test('subscribes a component to at most 10,000 endpoints over all calls', async () => {
    const { id } = await node.rooms.addComponent('hall', 'recording', { subscribeMode: 'manual' });
    const ids = (count: number, name: string): string[] => Array.from({ length: count }, (_, i) => `${name}${i}`);
    await node.rooms.subscribeComponent('hall', id, ids(MAX_ORIGINS - 1, 'a'));
    await node.rooms.subscribeComponent('hall', id, [...ids(MAX_ORIGINS - 1, 'a'), 'last']);
    const ann = await node.join('hall');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    const more = node.rooms.subscribeComponent('hall', id, ['a0', ann.id]);
    await expect(more).rejects.toThrow(`Component ${id} would be subscribed to more than 10000 peers and components`);
    expect(told).toEqual([]);
  });

  test('forgets endpoints that have gone, so that a component in a long-lived room does not reach the limit', async () => {
    const { id } = await node.rooms.addComponent('hall', 'recording', { subscribeMode: 'manual' });
    const film = await node.rooms.addComponent('hall', 'file', {});
    const ann = await node.join('hall');
    await node.rooms.subscribeComponent('hall', id, [ann.id, film.id, 'to-come']);
    await ann.detach();
    expect(node.host.componentState('hall', id)?.origins).toEqual([ann.id, film.id, 'to-come']);
    await node.rooms.removePeer('hall', ann.id);
    await node.rooms.removeComponent('hall', film.id);
    expect(node.host.componentState('hall', id)?.origins).toEqual(['to-come']);
  });

  test('crashes only the component that throws on receiving tracks', async () => {
    const ann = await node.join('hall');
    const { id } = await node.rooms.addComponent('hall', 'recording', { subscribeMode: 'auto' });
    await ann.act({ type: 'publish', tracks: [videoTrack('poison')] });
    await node.system.idle();
    expect(node.news().at(-1)).toBe(`componentCrashed ${id}`);
    expect((await node.rooms.getRoom('hall')).peers).toHaveLength(1);
  });

  test('announces tracks published at the start before any later call', async () => {
    node.news();
    const added = node.rooms.addComponent('hall', 'file', {});
    const deleted = node.rooms.deleteRoom('hall');
    const { id } = await added;
    await deleted;
    await node.system.idle();
    expect(node.news()).toEqual([`trackAdded ${id}/film`, `trackRemoved ${id}/film`, 'roomDeleted']);
  });
});

describe('component calls', () => {
  test('allows subscribe only for a component that receives tracks in manual mode', async () => {
    const file = await node.rooms.addComponent('kitchen', 'file', options);
    const hls = await node.rooms.addComponent('kitchen', 'hls', options);
    const subscribe = (id: string): Promise<void> => node.rooms.subscribeComponent('kitchen', id, ['p1', 'p2']);

    await expect(subscribe('nobody')).rejects.toMatchObject({ code: 'COMPONENT_NOT_FOUND' });
    await expect(subscribe(file.id)).rejects.toMatchObject({
      code: 'NOT_SUBSCRIBABLE',
      message: 'Subscribe mode is supported only for HLS and Recording components',
    });
    const sip = await node.rooms.addComponent('kitchen', 'sip', options);
    await expect(subscribe(sip.id)).rejects.toMatchObject({ code: 'NOT_SUBSCRIBABLE' });
    await expect(subscribe(hls.id)).rejects.toMatchObject({
      code: 'SUBSCRIBE_MODE_AUTO',
      message: `Component ${hls.id} option \`subscribe_mode\` is set to :auto`,
    });
    await node.rooms.removeComponent('kitchen', hls.id);
    const manual = await node.rooms.addComponent('kitchen', 'hls', { ...options, subscribeMode: 'manual' });
    await subscribe(manual.id);
    expect(deeds.at(-1)).toBe('take p1,p2');
  });

  test('allows a pause only for a component that can pause, and shows it from then on', async () => {
    const file = await node.rooms.addComponent('kitchen', 'file', options);
    const pause = (id: string, paused: boolean) => node.rooms.updateComponent('kitchen', id, { paused });
    await expect(pause('nobody', true)).rejects.toMatchObject({ code: 'COMPONENT_NOT_FOUND' });
    await expect(pause(file.id, true)).rejects.toMatchObject({
      code: 'NOT_A_RECORDING',
      message: `Component ${file.id} is not a Recording component`,
    });
    const { id, properties } = await node.rooms.addComponent('kitchen', 'hls', options);
    expect(properties).not.toHaveProperty('paused');
    expect((await pause(id, true)).properties).toMatchObject({ paused: true });
    expect((await node.rooms.getRoom('kitchen')).components.at(-1)?.properties).toMatchObject({ paused: true });
    expect((await pause(id, false)).properties).toMatchObject({ paused: false });
    await expect(pause(id, true)).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    expect(deeds).toEqual(['pause true', 'pause false', 'pause true']);
  });

  test('allows dial only for a SIP component', async () => {
    const file = await node.rooms.addComponent('any', 'file', options);
    const sip = await node.rooms.addComponent('any', 'sip', options);
    await node.rooms.dial('any', sip.id, '+1');
    await node.rooms.hangUp('any', sip.id);

    expect(deeds).toEqual(['dial +1', 'hang up']);
    await expect(node.rooms.dial('any', file.id, '1')).rejects.toMatchObject({
      code: 'NOT_A_SIP_COMPONENT',
      message: `Component ${file.id} is not a SIP component`,
    });
    await expect(node.rooms.hangUp('any', file.id)).rejects.toMatchObject({ code: 'NOT_A_SIP_COMPONENT' });
    await expect(node.rooms.hangUp('any', 'nobody')).rejects.toMatchObject({ code: 'COMPONENT_NOT_FOUND' });
  });
});
