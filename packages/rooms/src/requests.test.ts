import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger, type Logger } from '@bloom/log';
import type { Component, ComponentHost, ComponentKind } from './room/component-kind.js';
import { defaultRoomConfig } from './room-service.js';
import { testNode, TestSocket, videoTrack, type TestNode } from './testing/index.js';

let host: ComponentHost | undefined;
const components: ComponentKind = {
  type: 'file',
  limitPerRoom: null,
  prepare: async () => ({
    properties: {},
    subscribeMode: null,
    start: (given): Component => {
      host = given;
      host.report({ do: 'publish', tracks: [videoTrack('t0')] });
      return { close: async () => {} };
    },
  }),
};

let log: Logger;
let node: TestNode;

beforeEach(() => {
  log = createLogger({ sink: () => undefined, level: 'debug' });
  node = testNode({ componentKinds: [components], log });
});
afterEach(() => node.close());

const where = (requestId: string): string[] =>
  node.system.hops(requestId).map((hop) => `${hop.from} -> ${hop.where} ${hop.what}`);

describe('request ids', () => {
  test('carries a request id in the messages, notifications and log lines that the request causes', async () => {
    await node.rooms.forRequest('r1').createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
    const { peer } = await node.rooms.forRequest('r2').addPeer('kitchen', {});
    await node.rooms.forRequest('r3').addComponent('kitchen', 'file', {});
    await node.rooms.addPeer('kitchen', {});
    await node.rooms.forRequest('r4').deleteRoom('kitchen');
    expect(node.notifications.map(({ type }, i) => [type, node.requestIds[i]])).toEqual([
      ['roomCreated', 'r1'],
      ['peerAdded', 'r2'],
      ['trackAdded', 'r3'],
      ['peerAdded', undefined],
      ['peerDeleted', 'r4'],
      ['peerDeleted', 'r4'],
      ['trackRemoved', 'r4'],
      ['roomDeleted', 'r4'],
    ]);
    expect(where('r1')).toEqual(['rooms -> /rooms create']);
    expect(where('r2')).toEqual(['rooms -> /rooms/kitchen addPeer']);
    expect(peer.id).toBe('p1');
    const created = log.recent.last().find(({ event }) => event === 'room.created');
    expect(created?.fields['request_id']).toBe('r1');
  });

  test('does not carry a request id over to what happens later', async () => {
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
    await node.rooms.forRequest('r1').addComponent('kitchen', 'file', {});
    host?.report({ do: 'publish', tracks: [videoTrack('t1')] });
    host?.log.warn('file.slow');
    await node.system.idle();
    expect(node.notifications.map(({ type }) => type)).toEqual(['roomCreated', 'trackAdded', 'trackAdded']);
    expect(node.requestIds).toEqual([undefined, 'r1', undefined]);
    expect(log.recent.last().find(({ event }) => event === 'file.slow')?.fields['request_id']).toBeUndefined();
  });

  test('gives each client message its own request id, which passes through room and peers', async () => {
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
    const ann = await node.join('kitchen');
    await node.join('kitchen');
    const before = node.requestIds.length;
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    await ann.act({ type: 'unpublish', trackIds: ['t1'] });
    const [published, unpublished] = node.requestIds.slice(before) as [string, string];
    expect(published).toMatch(/^[\w-]{20,}$/);
    expect(unpublished).not.toBe(published);
    expect(where(published)).toEqual([
      'websocket -> /rooms/kitchen/peers/p1 clientEvent',
      '/rooms/kitchen/peers/p1 -> /rooms/kitchen fromPeer',
      '/rooms/kitchen -> /rooms/kitchen/peers/p2 input',
      expect.stringMatching(/^\/rooms\/kitchen\/peers\/p2 -> \/sockets\/.* send$/),
    ]);
  });

  test('records no more steps of a request in a room of thirty than in one of nine', async () => {
    const steps: number[] = [];
    for (const [roomId, people] of [
      ['small', 9],
      ['large', 30],
    ] as const) {
      await node.rooms.createRoom({ ...defaultRoomConfig, roomId });
      const ann = await node.join(roomId);
      for (let others = 1; others < people; others += 1) await node.join(roomId);
      await ann.act({ type: 'publish', tracks: [videoTrack(`${roomId} track`)] });
      steps.push(where(String(node.requestIds.at(-1))).length);
    }
    expect(steps).toEqual([18, 18]);
  });
});

describe('inspection', () => {
  test('shows peers, tracks and components of an inspected room, without the secret of its webhook', async () => {
    const config = {
      ...defaultRoomConfig,
      roomId: 'kitchen',
      webhookUrl: 'https://user:pass@hooks.example/in?key=secret',
    };
    await node.rooms.createRoom(config);
    const ann = await node.join('kitchen', { name: 'Ann' });
    await ann.act({ type: 'publish', tracks: [videoTrack('t1', { encodings: ['h', 'l'] })] });
    const { token } = await node.rooms.addPeer('kitchen', {});
    await node.rooms.addComponent('kitchen', 'file', {});
    const ref = node.host.roomRef('kitchen');
    const shown = ref && node.system.inspect(ref);
    expect(shown).toEqual({
      state: {
        roomId: 'kitchen',
        ended: false,
        config: { ...config, webhookUrl: 'https://hooks.example/in?...' },
        subscriptions: 1,
        peers: {
          p1: {
            status: 'connected',
            metadata: { name: 'Ann' },
            tracks: {
              t1: { kind: 'video', codec: 'h264', metadata: null, encodings: ['h', 'l'], disabledEncodings: [] },
            },
          },
          p2: { status: 'disconnected', metadata: null, tracks: {} },
        },
        components: {
          p3: {
            type: 'file',
            subscribeMode: null,
            origins: [],
            tracks: {
              t0: { kind: 'video', codec: 'h264', metadata: null, encodings: [], disabledEncodings: [] },
            },
            receives: [],
            details: null,
          },
        },
      },
    });
    for (const secret of [token, ann.token, 'pass@', 'key=secret']) expect(JSON.stringify(shown)).not.toContain(secret);
  });

  test('shows the connection of an inspected peer or socket, without descriptions', async () => {
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
    const ann = await node.join('kitchen');
    await ann.act({ type: 'setTimer', name: 'ice', ms: 5_000 });
    const peer = node.system.at('/rooms/kitchen/peers/p1');
    expect(peer && node.system.inspect(peer)).toEqual({
      state: {
        peerId: 'p1',
        connection: { number: 1, socket: expect.stringMatching(/^\/sockets\//), transport: 0, timers: ['ice'] },
      },
    });
    const [socket] = node.system.list({ limit: 1, match: (path) => path.startsWith('/sockets/') });
    expect(socket && node.system.inspect(socket.ref)).toEqual({ state: { closed: false, bound: true } });
  });
});

describe('a client that leaves on an open socket', () => {
  beforeEach(() => node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' }));
  const say = (...actions: object[]): string => JSON.stringify(actions);
  const attach = async () => {
    const { token, peer } = await node.rooms.addPeer('kitchen', {});
    const socket = new TestSocket();
    const attached = await node.rooms.attachPeer(token, socket);
    if (typeof attached === 'string') throw new Error(attached);
    await node.system.idle();
    return { attached, socket, peer };
  };

  test('closes the transport of a client that has left, whatever it sent before its socket closed', async () => {
    const { attached } = await attach();
    for (let at = 0; at < 600; at += 1) attached.receive('[]');
    attached.receive(say({ type: 'leave' }));
    attached.detach('closed_by_client');
    await node.system.idle();
    expect((await node.media.stats()).transports).toBe(0);
  });

  test('does not withhold a track muted while its client leaves after the client rejoins', async () => {
    const { attached, peer } = await attach();
    const publish = say({ type: 'join', metadata: null }, { type: 'publish', tracks: [videoTrack('t1')] });
    attached.receive(publish);
    await node.system.idle();
    attached.receive(say({ type: 'leave' }));
    await node.rooms.muteTrack('kitchen', { peerId: peer.id, trackId: 't1', muted: true });
    await node.system.idle();
    attached.receive(publish);
    await node.system.idle();
    const blocks = node.media.commands.filter((command) => command.includes('blocked'));
    expect(blocks.at(-1)).toBe(`kitchen: blocked ${peer.id} t1 false`);
  });

  test('lets a client rejoin as often as it may connect', async () => {
    const watcher = await node.join('kitchen');
    const { attached, socket } = await attach();
    watcher.socket.sent.length = 0;
    for (let at = 0; at < 500; at += 1) {
      attached.receive(say({ type: 'join', metadata: null }));
      attached.receive(say({ type: 'leave' }));
    }
    await node.system.idle();
    expect(socket.closed).toBe('1013 too many connections');
    expect(watcher.socket.sent.length).toBeLessThan(100);
  });
});
