import { openMediaEngine, type MediaEngine } from '@bloom/sfu';
import { createCertificate } from '@bloom/webrtc';
import { TestClient } from '@bloom/webrtc/testing';
import { ManualClock } from '@bloom/time/testing';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type PathCheck, PathChecks } from './path-checks.js';

let engine: MediaEngine;
let checks: PathChecks;
let clock: ManualClock;
const clients: TestClient[] = [];
const certificate = createCertificate();

beforeEach(async () => {
  engine = await openMediaEngine({
    listenIp: '127.0.0.1',
    announcedIp: '127.0.0.1',
    portRange: { min: 0, max: 0 },
    tcpPort: 0,
  });
  clock = new ManualClock();
  checks = new PathChecks({ media: engine, secretKeyBase: 'sixteen-letters!', clock });
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  await checks.close();
  await engine.close();
});

async function open(): Promise<PathCheck> {
  const check = await checks.open();
  if (check === undefined) throw new Error('no check is free');
  return check;
}

async function clientOf({ endpoint }: PathCheck, transport: 'udp' | 'tcp' = 'udp'): Promise<TestClient> {
  const client =
    transport === 'udp'
      ? await TestClient.open(endpoint, await certificate)
      : await TestClient.openTcp(endpoint.tcpPort ?? 0, endpoint, await certificate);
  clients.push(client);
  return client;
}

/** Allocates, and returns 200 or the code of the refusal. */
async function allocate(client: TestClient, { relay }: PathCheck): Promise<number> {
  return codeOf(await client.allocate(relay));
}

function codeOf(answer: Awaited<ReturnType<TestClient['permit']>>): number {
  return answer.errorCode ?? 200;
}

/** Lets checks end, which wait for the engine. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test.each(['udp', 'tcp'] as const)('a check gives an allocation over %s', async (transport) => {
  const check = await open();
  expect(await allocate(await clientOf(check, transport), check)).toBe(200);
});

test("passes nothing on to other addresses through a check's relay", async () => {
  const check = await open();
  const client = await clientOf(check);
  await allocate(client, check);
  const { port } = check.endpoint;
  const others = [
    { bytes: Uint8Array.of(127, 0, 0, 1), port: port + 1 },
    { bytes: Uint8Array.of(10, 0, 0, 1), port },
    { bytes: Uint8Array.of(8, 8, 8, 8), port: 53 },
  ];
  for (const other of others) {
    expect(codeOf(await client.permit(other))).toBe(403);
    expect(codeOf(await client.bindChannel(0x4001, other))).toBe(403);
  }
  expect(codeOf(await client.permit())).toBe(200);
});

test('ends whatever arrives through a check there', async () => {
  const check = await open();
  const client = await clientOf(check);
  await allocate(client, check);
  await client.permit();
  for (const packet of [Buffer.alloc(1_200, 0x80), Buffer.alloc(200, 22), Buffer.alloc(20)]) client.sendPacket(packet);
  expect(codeOf(await client.permit())).toBe(200);
  expect(client.inbox).toEqual([]);
});

test('ends credentials after 30 seconds with their allocations', async () => {
  const check = await open();
  const [before, after] = [await clientOf(check), await clientOf(check)];
  expect(check.expiresAt).toBe(clock.wall() + 30_000);
  await allocate(before, check);
  await clock.advanceAsync(30_000, settle);
  expect((await engine.stats()).transports).toBe(0);
  expect(await allocate(after, check)).toBe(401);
  await expect(before.permit()).rejects.toThrow();
});

test('refuses a wrong password', async () => {
  const check = await open();
  const forged = { ...check, relay: { ...check.relay, password: 'guessed' } };
  expect(await allocate(await clientOf(check), forged)).toBe(401);
});

test('stops endless checks at 64, and continues when those have ended', async () => {
  const opened = await Promise.all(Array.from({ length: 200 }, () => checks.open()));
  expect(opened.filter((check) => check !== undefined)).toHaveLength(64);
  expect(await checks.open()).toBeUndefined();
  await clock.advanceAsync(30_000, settle);
  expect((await engine.stats()).transports).toBe(0);
  expect(await checks.open()).toBeDefined();
});

describe('checks of people in rooms', () => {
  const openIn = async (roomId: string | undefined, times: number): Promise<number> => {
    const opened = await Promise.all(Array.from({ length: times }, () => checks.open(roomId)));
    return opened.filter((check) => check !== undefined).length;
  };

  test('checks in one room leave places to other rooms', async () => {
    expect(await openIn('crowded', 64)).toBe(16);
    expect(await openIn('hall', 1)).toBe(1);
  });

  test('checks of people leave places to operators', async () => {
    let opened = 0;
    for (let i = 0; i < 10; i++) opened += await openIn(`room${i}`, 16);
    expect(opened).toBe(56);
    expect(await openIn(undefined, 64)).toBe(8);
  });

  test('checks make room when they end', async () => {
    await openIn('crowded', 16);
    await clock.advanceAsync(30_000, settle);
    expect(await openIn('crowded', 64)).toBe(16);
  });

  test('checks take no place when they do not start', async () => {
    await engine.close();
    for (let i = 0; i < 16; i++) await expect(checks.open('hall')).rejects.toThrow();
    await expect(checks.open('hall')).rejects.toThrow();
  });
});

test('gives no two checks the same user', async () => {
  const users = [(await open()).relay.username, (await open()).relay.username];
  expect(new Set(users).size).toBe(2);
});

test('ends all checks on close, and opens none afterwards', async () => {
  await open();
  const late = checks.open();
  await checks.close();
  await late;
  expect((await engine.stats()).transports).toBe(0);
  expect(await checks.open()).toBeUndefined();
  expect(clock.pending).toBe(0);
});
