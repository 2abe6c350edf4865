// The most memory that a stranger and a backend can make a node hold, measured at the limits of
// docs/reference/limits.md. What participants and members can hold is measured next to the code that holds it.
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { apiToken, type BloomNode, startNode } from '../harness/bloom-node.js';
import { printMeasurements, promise } from '../harness/measurements.js';
import { describeWith } from '../harness/needs.js';
import { frame, many, Opcode, PEER_PATH, rawConnection, rawWebsocket, SERVER_PATH } from './harness/raw-socket.js';

const MIB = 1024 * 1024;
const CONNECTIONS = 1_024;
const WEBSOCKETS = 1_536;
/** Its share when all of them have 8 MiB together. */
const PER_WEBSOCKET = Math.floor((8 * MIB) / WEBSOCKETS);
const HEADER_BYTES = 15 * 1024;
const BODIES = 8;
const BODY_BYTES = 7_990_000;
const SETTLE_MS = 2_000;

describeWith(['nightly'], 'the most that one actor can hold', () => {
  let node: BloomNode;
  const sockets: Socket[] = [];

  beforeAll(async () => {
    node = await startNode();
    await delay(SETTLE_MS);
  }, 60_000);
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await node?.stop();
    printMeasurements('The most that one actor can hold');
  });

  const residentMib = (): number =>
    Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${node.pid}/status`, 'utf8'))?.[1]) / 1024;

  /** Measures the memory that `hold` makes the node keep. */
  async function holdsAtMost(boundMib: number, who: string, hold: () => Promise<Socket[]>): Promise<void> {
    const before = residentMib();
    const held = await hold();
    await delay(SETTLE_MS);
    expect(held.filter(({ destroyed }) => destroyed).length).toBe(0);
    promise(`memory held by ${who}`, residentMib() - before, { bound: boundMib, unit: 'MiB' });
    for (const socket of held) socket.destroy();
  }

  test('holds at most 128 MiB for a stranger with all connections and websockets of a network', async () => {
    const { host } = node;
    await holdsAtMost(128, 'a stranger', async () => {
      const start = frame({ opcode: Opcode.binary, announced: MIB });
      const part = Buffer.concat([start, Buffer.alloc(PER_WEBSOCKET - start.length - 16)]);
      const websockets: Socket[] = [];
      for (const path of [PEER_PATH, SERVER_PATH]) {
        const opened = await many(WEBSOCKETS, () => rawWebsocket({ host, path }));
        for (const socket of opened) socket.write(part);
        websockets.push(...opened);
      }
      // Last, because a websocket counts as one of these until its upgrade.
      const connections = await many(CONNECTIONS, () => rawConnection({ host }));
      for (const socket of connections) socket.write(`GET / HTTP/1.1\r\nx: ${'x'.repeat(HEADER_BYTES)}`);
      return [...connections, ...websockets];
    });
  }, 60_000);

  test('holds at most 192 MiB for a backend with all large bodies', async () => {
    await holdsAtMost(192, 'a backend', async () => {
      const opened = await many(BODIES, () => rawConnection({ host: node.host, from: '127.0.0.1' }));
      for (const socket of opened) {
        socket.write(
          `POST /room HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${apiToken}\r\ncontent-type: application/json\r\ncontent-length: ${BODY_BYTES + 1}\r\n\r\n`,
        );
        socket.write(Buffer.alloc(BODY_BYTES, '['));
      }
      return opened;
    });
  }, 60_000);
});
