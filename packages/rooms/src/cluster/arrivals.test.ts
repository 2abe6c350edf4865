// What a taker keeps of moves. moving.test.ts takes rooms over real connections.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import type { HeldRoom } from '../room-host-options.js';
import { defaultRoomConfig } from '../room-service.js';
import type { RoomRef } from '../room/room-messages.js';
import { Arrivals } from './arrivals.js';
import type { ClusterPort } from './cluster-port.js';

const REF = { path: '/rooms/kitchen', key: '1' } as RoomRef;

function start() {
  const clock = new ManualClock();
  const places: WeakRef<HeldRoom>[] = [];
  const released: string[] = [];
  const asked: string[] = [];
  const giver = { protocol: 3 };
  const arrivals = new Arrivals({
    port: {
      self: 'b',
      members: () => ['a'],
      speaks: (_node: string, version: number) => version <= giver.protocol,
      call: async (_node: string, { type }: { type: string }) => {
        asked.push(type);
        return 'offered';
      },
    } as unknown as ClusterPort,
    host: {
      draining: false,
      relayRef: () => undefined,
      holdRoom: async () => {
        const place: HeldRoom = { open: async () => REF, drop: async () => undefined };
        places.push(new WeakRef(place));
        return place;
      },
    },
    announced: (_node, roomId) => ({ roomId, createdAt: 1, ref: REF }),
    own: () => undefined,
    webhooks: {
      release: (roomId, event) => void released.push(`${roomId} ${event === null ? 'nothing' : 'an event'}`),
    },
    log: silentLog,
    clock,
  });
  const offer = (move: string) => {
    const config = { ...defaultRoomConfig, roomId: move };
    const snapshot = { config, peers: [], invitations: [], peerlessMs: null };

    return arrivals.offer({ node: 'a', move, createdAt: 1, epoch: 1, snapshot });
  };

  return { clock, arrivals, offer, places, released, asked, giver };
}

test('remembers a taken room for 20 minutes, twice as long as givers ask', async () => {
  const { clock, arrivals, offer } = start();
  await offer('m');
  expect(await arrivals.take('a', 'm')).toBe(REF);
  clock.advance(1_200_000);
  await offer('m2');
  expect(await arrivals.take('a', 'm')).toBe(REF);
  clock.advance(1);
  await offer('m3');
  expect(await arrivals.take('a', 'm')).toBeNull();
});

test('frees the place of a room whose giver has started again with a release that knows no moves', async () => {
  const { clock, arrivals, offer, asked, giver } = start();
  await offer('m');
  giver.protocol = 1;
  clock.advance(2_000);
  await new Promise((resolve) => setImmediate(resolve));
  expect(asked).toEqual([]);
  expect(arrivals.held).toBe(0);
});

test('goes on with the webhooks of a room that it has taken, and of no other', async () => {
  const { arrivals, offer, released } = start();
  await offer('taken');
  arrivals.webhooksOver('a', 'taken', null);
  await arrivals.take('a', 'taken');
  arrivals.webhooksOver('c', 'taken', null);
  arrivals.webhooksOver('a', 'unknown', null);
  expect(released).toEqual([]);
  arrivals.webhooksOver('a', 'taken', null);
  arrivals.webhooksOver('a', 'taken', 'AAAA');
  expect(released).toEqual(['taken nothing', 'taken an event']);
});

test('keeps the place of a room neither once it runs nor once it is given up', async () => {
  const { arrivals, offer, places } = start();
  await offer('taken');
  await arrivals.take('a', 'taken');
  await offer('kept');
  arrivals.keep('a', 'kept');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  expect(places.map((place) => place.deref())).toEqual([undefined, undefined]);
  expect(await arrivals.take('a', 'taken')).toBe(REF);
});
