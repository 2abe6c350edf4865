import { existsSync } from 'node:fs';
import { setEnvironmentData } from 'node:worker_threads';
import { afterEach, describe, expect, test } from '@jest/globals';
import { createCertificate } from '@bloom/webrtc';
import { silentLog, type Log } from '@bloom/log';
import { ManualClock, until } from '@bloom/time/testing';
import { randomBytes } from 'node:crypto';
import type { MediaRoomEvent } from '../media-engine.js';
import { inboundVideo, SyntheticSource, videoSlot } from '../testing/synthetic-media.js';
import { WireClient } from '../testing/wire-client.js';
import { createMediaEngine } from './create-media-engine.js';
import { describeEngineContract } from '../testing/engine-contract.js';
import { describeEngine } from '../testing/engine-suite.js';
import { MediaWorkers, type MediaWorkersOptions } from './media-workers.js';
import { stuckThreads } from './thread-worker.js';

/** Threads load compiled code only, so `npm test` builds before it tests. */
const workerEntry = new URL('../../dist/engine/worker-main.js', import.meta.url);
if (!existsSync(workerEntry)) throw new Error('the media worker is not built: run `npx tsc -b packages/sfu` first');

const LOCAL = { listenIp: '127.0.0.1', announcedIp: '127.0.0.1', portRange: { min: 0, max: 0 } };

describeEngine('the engine on two worker threads', () =>
  createMediaEngine({ ...LOCAL, tcpPort: 0, workers: 2, workerEntry }),
);

describeEngineContract('worker threads', () => createMediaEngine({ ...LOCAL, workers: 1, workerEntry }));

describe('media workers', () => {
  const closers: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close();
  });

  async function start(workers: number, over: Partial<MediaWorkersOptions> = {}): Promise<MediaWorkers> {
    const certificate = await createCertificate();
    const settings = { ...LOCAL, certificate, nonceSecret: randomBytes(32) };
    const endpoint = { address: '127.0.0.1', fingerprint: certificate.fingerprint };
    const usual = { workers, settings, endpoint, log: silentLog, entry: workerEntry };
    const engine = await MediaWorkers.start({ ...usual, ...over });
    closers.push(() => engine.close());
    return engine;
  }

  /** Returns the entry of a worker that is not ours. */
  const entryOf = (source: string): URL => new URL(`data:text/javascript,${encodeURIComponent(source)}`);

  test('rooms are spread over the workers, and each worker has its own port', async () => {
    const engine = await start(2);
    const rooms = [];
    for (let i = 0; i < 4; i++) rooms.push(await engine.openRoom(`room${i}`, () => undefined));
    const ports = rooms.map(({ endpoint }) => endpoint.port);
    expect(new Set(ports).size).toBe(2);
    expect(ports[0]).toBe(ports[2]);
    rooms[0]!.openTransport('p', { username: '1:p', password: 'x' });
    rooms[2]!.openTransport('p', { username: '1:q', password: 'x' });
    expect((await engine.openRoom('next', () => undefined)).endpoint.port).toBe(ports[1]);
    expect((await engine.stats()).rooms).toBe(5);
  });

  test('a killed worker takes only its own rooms with it and is replaced', async () => {
    const engine = await start(2);
    const events: MediaRoomEvent[] = [];
    const doomed = await engine.openRoom('doomed', (event) => events.push(event));
    const spared = await engine.openRoom('spared', () => undefined);
    expect(doomed.endpoint.port).not.toBe(spared.endpoint.port);

    const certificate = await createCertificate();
    const publisher = await WireClient.open(spared, 'pub', certificate);
    const viewer = await WireClient.open(spared, 'sub', certificate);
    closers.push(
      () => publisher.close(),
      () => viewer.close(),
    );
    await publisher.cycle({ inbound: [inboundVideo('cam')] });
    await viewer.cycle({ outbound: [videoSlot('cam')] });
    const camera = new SyntheticSource({ ssrc: 0x101, payloadType: 96, mid: '1' });
    let sent = 0;
    const sendFrame = (key = false): void => {
      for (const packet of camera.vp8Frame({ key })) {
        publisher.send(packet);
        sent++;
      }
    };
    sendFrame(true);
    await viewer.until(() => viewer.rtp.length === sent);

    // The picture of the surviving room continues throughout.
    const playing = setInterval(sendFrame, 5);
    closers.push(async () => clearInterval(playing));
    await engine.killWorkerOf('doomed', 'killed by a test');
    expect(events).toEqual([{ type: 'roomFailed', reason: 'killed by a test' }]);
    expect(engine.workerRestarts).toBe(1);
    expect(engine.takesRooms).toBe(true);
    for (const busy of [...engine.workersBusy(), ...engine.workersBusy()]) {
      expect(busy).toBeGreaterThanOrEqual(0);
      expect(busy).toBeLessThanOrEqual(1);
    }
    doomed.closeTransport('nobody');
    await expect(doomed.stats()).rejects.toMatchObject({ code: 'CLOSED' });
    await doomed.close();

    const atKill = sent;
    await viewer.until(() => viewer.rtp.length >= atKill + 40);
    clearInterval(playing);
    await viewer.until(() => viewer.rtp.length === sent);
    expect(spared.endpoint.port).toBeGreaterThan(0);

    // The replacement accepts rooms again, including one with the name of the lost room.
    let again = await engine.openRoom('doomed', () => undefined);
    while (again.endpoint.port === spared.endpoint.port) {
      await again.close();
      await new Promise((resolve) => setTimeout(resolve, 50));
      again = await engine.openRoom('doomed', () => undefined);
    }
    expect((await again.stats()).transports).toEqual([]);
  });

  test('a worker is profiled while it works, and the others are not', async () => {
    const engine = await start(1);
    await engine.openRoom('busy', () => undefined);
    expect(await engine.profileWorker(1, 'stop')).toBeUndefined();
    await engine.profileWorker(1, 'cpu');
    for (let i = 0; i < 50; i++) await engine.stats();
    const cpu: unknown = JSON.parse((await engine.profileWorker(1, 'stop')) ?? '');
    expect(cpu).toMatchObject({ nodes: expect.any(Array), samples: expect.any(Array) });
    expect(JSON.stringify(cpu)).toContain('worker-main.js');
    await engine.profileWorker(1, 'heap');
    expect(JSON.parse((await engine.profileWorker(1, 'stop')) ?? '')).toHaveProperty('head');
    await engine.profileWorker(1, 'heap');
    await engine.profileWorker(1, 'cancel');
    expect(await engine.profileWorker(1, 'stop')).toBeUndefined();
    await expect(engine.profileWorker(2, 'cpu')).rejects.toMatchObject({ code: 'CLOSED' });
  });

  test('a worker that hangs is treated as dead', async () => {
    const entry = entryOf(`
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', ({ type, call }) => {
        if (type === 'openRoom') parentPort.postMessage({ type: 'reply', call });
        if (type === 'stats') for (;;);
      });
      parentPort.postMessage({ type: 'ready', port: 1 });
    `);
    const clock = new ManualClock();
    const engine = await start(1, { entry, clock, hangMs: 2_000 });
    const events: MediaRoomEvent[] = [];
    await engine.openRoom('stuck', (event) => events.push(event));
    clock.advance(2_000);
    expect(events).toEqual([]);
    clock.advance(1_000);
    await until(() => events.length > 0);
    expect(events).toEqual([{ type: 'roomFailed', reason: 'the media worker did not answer' }]);
  });

  test('a pause of the main thread does not make a worker count as hung', async () => {
    const entry = entryOf(`
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', ({ type, call }) => {
        if (type === 'close') parentPort.close();
        else parentPort.postMessage({ type: 'reply', call });
      });
      parentPort.postMessage({ type: 'ready', port: 1 });
    `);
    const clock = new ManualClock();
    const engine = await start(1, { entry, clock, hangMs: 2_000 });
    const events: MediaRoomEvent[] = [];
    await engine.openRoom('room', (event) => events.push(event));
    // Pauses while the watchdog's ping is unanswered, for longer than the watchdog waits.
    clock.advance(1_000);
    clock.leap(60_000);
    // Answers arrive in the order of the calls.
    await engine.stats();
    clock.advance(2_000);
    expect(events).toEqual([]);
  });

  test('an uninterruptible worker is given up: its rooms fail, and another one takes its place', async () => {
    // Native code waits for the other program, and no thread is terminated in the middle of that.
    const entry = entryOf(`
      import { parentPort } from 'node:worker_threads';
      import { spawnSync } from 'node:child_process';
      parentPort.on('message', (message) => {
        if (message.type === 'close') process.exit();
        parentPort.postMessage({ type: 'reply', call: message.call });
        if (message.type === 'openRoom' && message.roomId === 'stuck') setImmediate(() => spawnSync('sleep', ['5']));
      });
      parentPort.postMessage({ type: 'ready', port: 1 });
    `);
    const said: string[] = [];
    const log: Log = { ...silentLog, error: (event) => void said.push(event) };
    const engine = await start(1, { entry, log, hangMs: 1_000, terminateMs: 200 });
    const failed = await new Promise<MediaRoomEvent>((resolve) => void engine.openRoom('stuck', resolve));
    expect(failed).toEqual({ type: 'roomFailed', reason: 'the media worker did not answer' });
    expect(said).toEqual(['media.worker_hangs', 'media.worker_stuck', 'media.worker_gone']);
    expect(stuckThreads()).toBe(1);

    await engine.openRoom('next', () => undefined);
    while (stuckThreads() > 0) await new Promise((resolve) => setTimeout(resolve, 50));
  }, 60_000);

  test('a room waits for the replacement of the only worker', async () => {
    const engine = await start(1, { replacementMs: 20_000 });
    await engine.openRoom('doomed', () => undefined);
    await engine.killWorkerOf('doomed', 'killed by a test');
    const room = await engine.openRoom('next', () => undefined);
    expect((await room.stats()).transports).toEqual([]);
  });

  test('a room that waits for a worker is refused when the engine closes', async () => {
    const entry = entryOf(`
      import { parentPort } from 'node:worker_threads';
      parentPort.postMessage({ type: 'ready', port: 1 });
      parentPort.on('message', () => process.exit());
    `);
    const engine = await start(1, { entry });
    await expect(engine.openRoom('doomed', () => undefined)).rejects.toMatchObject({ code: 'CLOSED' });
    const waiting = engine.openRoom('late', () => undefined);
    await engine.close();
    await expect(waiting).rejects.toMatchObject({ code: 'WORKER_FAILED' });
  });

  test('a worker that does not start is given up', async () => {
    const entry = entryOf(`setInterval(() => {}, 1000);`);
    await expect(start(1, { entry, startMs: 300 })).rejects.toMatchObject({
      code: 'WORKER_FAILED',
      message: 'the media worker did not start within 300 ms',
    });
  });

  test('a worker that does not become ready is logged while it is awaited', async () => {
    const entry = entryOf(`
      import { getEnvironmentData, parentPort } from 'node:worker_threads';
      Atomics.wait(getEnvironmentData('may be ready'), 0, 0);
      parentPort.postMessage({ type: 'ready', port: 1 });
      parentPort.on('message', () => {});
    `);
    const said: unknown[] = [];
    const log: Log = { ...silentLog, warn: (event, fields) => void said.push([event, fields]) };
    const clock = new ManualClock();
    const gate = new Int32Array(new SharedArrayBuffer(4));
    setEnvironmentData('may be ready', gate);
    const starting = start(1, { entry, log, clock });
    await until(() => clock.pending > 0);
    clock.advance(20_000);
    const line = { ready: 0, workers: 1 };
    expect(said).toEqual([
      ['media.workers_starting', { ...line, waitedMs: 10_000 }],
      ['media.workers_starting', { ...line, waitedMs: 20_000 }],
    ]);
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
    await starting;
    clock.advance(10_000);
    expect(said).toHaveLength(2);
  });

  test('a port that cannot be bound is reported as such', async () => {
    const starting = createMediaEngine({ ...LOCAL, listenIp: '203.0.113.1', workers: 2, workerEntry });
    await expect(starting).rejects.toMatchObject({ code: 'BAD_ADDRESS' });
  });
});
