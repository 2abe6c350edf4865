import { MessageChannel } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import { createRingMemory } from '../crossing/shared-ring.js';
import type { CrossingData } from '../crossing/worker-link.js';
import { RingLink } from './ring-link.js';

const MIB = 1024 * 1024;

let link: RingLink;
let there: RingLink;
let received: number;
beforeEach(() => {
  const { port1, port2 } = new MessageChannel();
  const [outgoing, incoming] = [createRingMemory(4_096), createRingMemory(4_096)];
  received = 0;
  const receiver = { packet: () => undefined, message: () => void received++ };
  link = new RingLink({ worker: 2, port: port1, outgoing, incoming }, receiver);
  there = new RingLink({ worker: 1, port: port2, outgoing: incoming, incoming: outgoing }, receiver);
});
afterEach(() => {
  link.close();
  there.close();
});

const messageOf = (bytes: number, receivers?: string[]): CrossingData => ({
  label: 'chat',
  isText: false,
  kind: { ordered: true },
  frame: new Uint8Array(bytes),
  receivers,
});

/** Sends messages of this room until none fits. The other end does not read. Returns the number of messages. */
function flood(room: number, data: CrossingData): number {
  let sent = 0;
  while (sent < 100_000 && link.fits(room, data)) {
    link.post({ room, type: 'data', data });
    sent++;
  }
  return sent;
}

describe('the messages on a link between workers', () => {
  test('messages of one room leave as much to other rooms as they take', () => {
    expect(flood(1, messageOf(65_536)) * 65_536).toBeLessThanOrEqual(4 * MIB);
    expect(link.fits(1, messageOf(65_536))).toBe(false);
    expect(link.fits(2, messageOf(65_536))).toBe(true);
  });

  test('messages of several rooms leave something to one more', () => {
    for (let room = 1; room <= 5; room++) flood(room, messageOf(16_384));
    expect(link.fits(6, messageOf(65_536))).toBe(true);
  });

  test("counts the ids of a message's receivers towards its size, also when the message is empty", () => {
    const ids = Array.from({ length: 127 }, (_, id) => `${id}`.padEnd(127, 'x'));
    expect(flood(1, messageOf(0, ids)) * 127 * 127).toBeLessThanOrEqual(4 * MIB);
    expect(flood(2, messageOf(0)) * 512).toBeLessThanOrEqual(4 * MIB);
  });

  test('no longer counts messages that have arrived', async () => {
    const sent = flood(1, messageOf(65_536));
    await until(() => received === sent);
    expect(flood(1, messageOf(65_536))).toBe(sent);
  });
});
