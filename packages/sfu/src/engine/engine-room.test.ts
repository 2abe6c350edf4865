import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { createCertificate } from '@bloom/webrtc';
import { EngineRoom } from './engine-room.js';
import { LocalWorker } from './local-worker.js';
import { MediaCore } from './media-core.js';
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
