import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { createCertificate } from '@bloom/webrtc';
import { EngineRoom } from './engine-room.js';
import { LocalWorker } from './local-worker.js';
import { MediaCore } from './media-core.js';
import type { MediaPermissions } from '../media-engine.js';
import type { MediaWorker } from './media-worker.js';

const certificate = createCertificate();
const workers: LocalWorker[] = [];
beforeEach(async () => {
  for (let i = 0; i < 2; i++) {
    const core = await MediaCore.open({
      listenIp: '127.0.0.1',
      announcedIp: '127.0.0.1',
      portRange: { min: 0, max: 0 },
      certificate: await certificate,
      nonceSecret: randomBytes(32),
      log: silentLog,
    });
    workers.push(new LocalWorker(core));
  }
});
afterEach(() => Promise.all(workers.splice(0).map((worker) => worker.close())));

test('tells its worker of each change once, and nothing when a client is permitted everything from the start', async () => {
  const [home] = workers;
  const { fingerprint } = await certificate;
  const posted: unknown[] = [];
  const port = home!.portTo(1);
  home!.portTo = () => ({ ...port, post: (command) => void posted.push(command) });
  const room = new EngineRoom({
    roomId: 'quiet',
    number: 1,
    home: home!,
    workers: {
      endpointOn: ({ port }) => ({ address: '127.0.0.1', port, fingerprint }),
      find: () => home,
      assign: () => undefined,
      link: () => false,
      routeUser: () => undefined,
      unrouteUser: () => undefined,
    },
    log: silentLog,
    onEvent: () => undefined,
    onClosed: () => undefined,
  });
  await home!.open(1, room);
  const everything = { audio: true, video: true, data: true, subscribe: true };
  const nothing = { audio: false, video: false, data: false, subscribe: false };
  const permit = (permissions: MediaPermissions): void =>
    room.do({ type: 'setPermissions', peerId: 'ann', permissions });
  permit(everything);
  for (let i = 0; i < 2; i++) room.do({ type: 'watchQuality' });
  for (const permissions of [nothing, everything, everything]) permit(permissions);
  expect(posted).toEqual([
    { type: 'watchQuality' },
    { type: 'setPermissions', peerId: 'ann', permissions: nothing },
    { type: 'setPermissions', peerId: 'ann', permissions: everything },
  ]);
  await room.close();
});

test('stays on its workers when there is no memory for a link to another one', async () => {
  const [home, other] = workers;
  const { fingerprint } = await certificate;
  const asked: (readonly MediaWorker[])[] = [];
  const routed: MediaWorker[] = [];
  const room = new EngineRoom({
    roomId: 'crowded',
    number: 1,
    home: home!,
    workers: {
      endpointOn: ({ port }) => ({ address: '127.0.0.1', port, fingerprint }),
      find: (id) => workers[Number(id) - 1],
      assign: () => ({ worker: 2, because: 'least_busy' }),
      link: (worker, others) => {
        asked.push([worker, ...others]);
        return false;
      },
      routeUser: (_, worker) => void routed.push(worker),
      unrouteUser: () => undefined,
    },
    log: silentLog,
    onEvent: () => undefined,
    onClosed: () => undefined,
  });
  await home!.open(1, room);
  const endpoint = room.openTransport('ann', { username: '1:ann', password: 'x' });
  expect(endpoint.port).toBe(home!.port);
  expect(asked).toEqual([[other, home]]);
  expect(routed).toEqual([home]);
  expect(other!.rooms.size).toBe(0);
  expect(room.choiceOf('ann')).toEqual({ worker: home!.id, because: 'no_memory' });
  const { transports } = await room.stats();
  expect(transports.map(({ peerId }) => peerId)).toEqual(['ann']);
  await room.close();
});
