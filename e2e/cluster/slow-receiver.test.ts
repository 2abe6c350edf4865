// Moves a room whose backend answers its webhooks slowly.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { decodeServerMessage } from '@bloom/protocol';
import { describeWith } from '../harness/needs.js';
import { type Pair, startPair } from '../hls/pair.js';
import { until } from './until.js';

jest.setTimeout(120_000);

/** Time that the backend takes for each event. */
const ANSWER_MS = 1_500;
const TOO_SLOW = /its events have not arrived everywhere|does not answer/;

describeWith(['ffmpeg'], 'a room whose backend is slow', () => {
  let pair: Pair;
  /** `<type> <peer id>` of each event of a room, in order of arrival. */
  const heardOf = new Map<string, string[]>();
  const atOnce = new Map<string, number>();
  let mostAtOnce = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const message = decodeServerMessage(Buffer.concat(chunks));
      const room = 'roomId' in message ? message.roomId : '';
      const event = `${message.type} ${'peerId' in message ? message.peerId : ''}`.trim();
      heardOf.set(room, [...(heardOf.get(room) ?? []), event]);
      const begun = (atOnce.get(room) ?? 0) + 1;
      atOnce.set(room, begun);
      mostAtOnce = Math.max(mostAtOnce, begun);
      void delay(ANSWER_MS).then(() => {
        atOnce.set(room, (atOnce.get(room) ?? 0) - 1);
        response.end();
      });
    });
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    pair = await startPair();
  });
  afterAll(async () => {
    await pair?.stop();
    server.closeAllConnections();
    server.close();
  });

  test('moves at once, and its events arrive once and in order', async () => {
    const { one, two } = pair;
    const webhookUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const room = await pair.roomOnTwo({ webhookUrl });
    const added: string[] = [];
    const add = async (): Promise<void> => {
      const { body } = await one.api.request('POST', `/room/${room}/peer`, { type: 'webrtc', options: {} });
      added.push(body.data.peer.id);
    };
    for (let i = 0; i < 6; i++) await add();
    const heard = (): string[] => heardOf.get(room) ?? [];
    await until('the room has moved', async () => {
      const { status, body } = await one.api.request('POST', `/room/${room}/move`, { node: one.name });
      if (status === 200) return true;
      if (status !== 503 && !(status === 409 && TOO_SLOW.test(body.errors))) throw new Error(body.errors);
      return false;
    });
    const behind = 1 + added.length - heard().length;
    process.stdout.write(`the room moved while ${behind} of its events waited for the backend\n`);
    expect(behind).toBeGreaterThan(0);
    for (let i = 0; i < 2; i++) await add();
    await one.api.deleteRoom(room);
    await two.stop();
    await until('the backend has heard of the end', () => heard().includes('roomDeleted'));
    const others = heard().filter((event) => !/^peer(Deleted|Disconnected)/.test(event));
    expect(others).toEqual(['roomCreated', ...added.map((id) => `peerAdded ${id}`), 'roomDeleted']);
    expect(mostAtOnce).toBe(1);
  });
});
