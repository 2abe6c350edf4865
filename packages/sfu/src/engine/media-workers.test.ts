import { existsSync } from 'node:fs';
import { setEnvironmentData } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createCertificate } from '@bloom/webrtc';
import { freeUdpRange } from '@bloom/net/testing';
import { silentLog, type Log } from '@bloom/log';
import { ManualClock, until } from '@bloom/time/testing';
import { randomBytes } from 'node:crypto';
import type { MediaRoomEvent } from '../media-engine.js';
import type { TappedFrame } from '../media-frames.js';
import { inboundVideo, SyntheticSource, videoSlot } from '../testing/synthetic-media.js';
import { WireClient } from '../testing/wire-client.js';
import { openMediaEngine } from './open-media-engine.js';
import { describeEngineContract } from '../testing/engine-contract.js';
import { describeEngine } from '../testing/engine-suite.js';
import { describeReceivers } from '../testing/receiver-suite.js';
import { MediaWorkers, type MediaWorkersOptions } from './media-workers.js';
import { stuckThreads } from './thread-worker.js';

/** Threads load compiled code only, so `npm test` builds before it tests. */
const workerEntry = new URL('../../dist/engine/worker-main.js', import.meta.url);
if (!existsSync(workerEntry)) throw new Error('the media worker is not built: run `npx tsc -b packages/sfu` first');

beforeAll(() => setEnvironmentData('bloom.cold', true));
afterAll(() => setEnvironmentData('bloom.cold', undefined));

const LOCAL = { listenIp: '127.0.0.1', announcedIp: '127.0.0.1', portRange: { min: 0, max: 0 } };

describeEngine('the engine on two worker threads', () =>
  openMediaEngine({ ...LOCAL, tcpPort: 0, workers: 2, workerEntry }),
);

/** Each transport of a room goes to the next worker. */
const alternate: NonNullable<MediaWorkersOptions['assign']> = ({ current, samples }) => {
  const next = samples[(samples.findIndex(({ worker }) => worker === current) + 1) % samples.length];
  return next && { worker: next.worker, because: 'busier_than_others' };
};

describeEngine('the engine whose rooms span three worker threads', () =>
  openMediaEngine({ ...LOCAL, tcpPort: 0, workers: 3, workerEntry, assign: alternate }),
);

describeEngineContract('a room on several worker threads', () =>
  openMediaEngine({ ...LOCAL, workers: 2, workerEntry, assign: alternate }),
);

describeReceivers('a room on several worker threads', () =>
  openMediaEngine({ ...LOCAL, tcpPort: 0, workers: 2, workerEntry, assign: alternate }),
);

describeEngineContract('worker threads', () => openMediaEngine({ ...LOCAL, workers: 1, workerEntry }));

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
    const engine = await MediaWorkers.open({ ...usual, ...over });
    closers.push(() => engine.close());
    return engine;
  }

  /** Returns the entry of a worker other than ours. */
  const entryOf = (source: string): URL => new URL(`data:text/javascript,${encodeURIComponent(source)}`);

  test('spreads rooms over the workers, each of which has its own port', async () => {
    const engine = await start(2);
    const rooms = [];
    for (let i = 0; i < 4; i++) rooms.push(await engine.openRoom(`room${i}`, () => undefined));
    const first = rooms[0]!.openTransport('p', { username: '1:p', password: 'x' });
    const second = rooms[1]!.openTransport('p', { username: '1:q', password: 'x' });
    expect(second.worker).not.toBe(first.worker);
    expect(second.port).not.toBe(first.port);
    expect(rooms[2]!.openTransport('p', { username: '1:r', password: 'x' })).toEqual(first);
    const next = await engine.openRoom('next', () => undefined);
    expect(next.openTransport('p', { username: '1:s', password: 'x' })).toEqual(second);
    expect((await engine.stats()).rooms).toBe(5);
  });

  test('says why each transport is on its worker, also after its client has connected again', async () => {
    const engine = await start(2, { assign: alternate });
    const room = await engine.openRoom('spanning', () => undefined);
    expect(room.choiceOf('ann')).toBeUndefined();
    const first = room.openTransport('ann', { username: '1:ann', password: 'x' });
    const second = room.openTransport('bob', { username: '1:bob', password: 'x' });
    expect(room.choiceOf('ann')).toEqual({ worker: first.worker, because: 'busier_than_others' });
    expect(room.choiceOf('bob')).toEqual({ worker: second.worker, because: 'busier_than_others' });
    room.openTransport('bob', { username: '2:bob', password: 'x' }, { at: second });
    expect(room.choiceOf('bob')).toEqual({ worker: second.worker, because: 'busier_than_others' });
    await room.closeTransport('bob');
    expect(room.choiceOf('bob')).toBeUndefined();
    room.openTransport('bob', { username: '3:bob', password: 'x' }, { at: second });
    expect(room.choiceOf('bob')).toEqual({ worker: second.worker, because: 'told_before' });
    expect(engine.workerSamples().map(({ worker, transports }) => ({ worker, transports }))).toEqual([
      { worker: 1, transports: 1 },
      { worker: 2, transports: 1 },
    ]);
  });

  test('gives out the ports that clients reach behind a port mapping, for each worker its own', async () => {
    const { first, last } = await freeUdpRange(2);
    const listed = new Map([
      [first, 31_000],
      [last, 31_001],
    ]);
    const settings = {
      ...LOCAL,
      portRange: { min: first, max: last },
      advertisedPorts: { offset: 0, listed },
      certificate: await createCertificate(),
      nonceSecret: randomBytes(32),
    };
    const engine = await start(2, { settings, assign: alternate });
    const room = await engine.openRoom('mapped', () => undefined);
    const ports = ['ann', 'bob'].map(
      (peerId) => room.openTransport(peerId, { username: `1:${peerId}`, password: 'x' }).port,
    );
    expect(ports.toSorted()).toEqual([31_000, 31_001]);
    expect(room.endpointOf('bob')?.port).toBe(ports[1]);
  });

  test('has no choice with a single worker', async () => {
    const engine = await start(1);
    const room = await engine.openRoom('small', () => undefined);
    room.openTransport('ann', { username: '1:ann', password: 'x' });
    expect(room.choiceOf('ann')).toEqual({ worker: 1, because: 'only_worker' });
  });

  test("loses only a killed worker's own rooms, and replaces the worker", async () => {
    const engine = await start(2);
    const events: MediaRoomEvent[] = [];
    const doomed = await engine.openRoom('doomed', (event) => events.push(event));
    const spared = await engine.openRoom('spared', () => undefined);
    const lost = doomed.openTransport('p', { username: '1:p', password: 'x' });
    expect(doomed.endpointOf('p')).toEqual(lost);
    expect(doomed.endpointOf('nobody')).toBeUndefined();

    const certificate = await createCertificate();
    const publisher = await WireClient.open(spared, 'pub', certificate);
    const kept = spared.endpointOf('pub')!;
    expect(kept.port).not.toBe(lost.port);
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
    expect(spared.endpointOf('pub')).toEqual(kept);
    expect(doomed.endpointOf('p')).toBeUndefined();

    // The replacement accepts rooms again, including one with the lost room's name.
    let again = await engine.openRoom('doomed', () => undefined);
    const join = (): number => again.openTransport('p', { username: '1:p', password: 'x' }).port;
    while (join() === kept.port) {
      await again.close();
      await new Promise((resolve) => setTimeout(resolve, 50));
      again = await engine.openRoom('doomed', () => undefined);
    }
    expect((await again.stats()).transports).toHaveLength(1);
  });

  test("loses only a dead worker's own transports, whose peers connect again on another worker", async () => {
    const engine = await start(2, { assign: alternate });
    const events: MediaRoomEvent[] = [];
    const room = await engine.openRoom('spanning', (event) => events.push(event));
    const lost = (): MediaRoomEvent[] => events.filter(({ type }) => type === 'transportLost' || type === 'roomFailed');
    const certificate = await createCertificate();
    const open = async (peerId: string): Promise<WireClient> => {
      const client = await WireClient.open(room, peerId, certificate);
      closers.push(() => client.close());
      return client;
    };
    const publisher = await open('pub');
    const viewer = await open('sub');
    const neighbour = await open('near');
    await publisher.cycle({ inbound: [inboundVideo('cam')] });
    await viewer.cycle({ outbound: [videoSlot('cam')] });
    await neighbour.cycle({ outbound: [videoSlot('cam')] });
    const [here, there] = [room.endpointOf('pub')!.worker!, room.endpointOf('sub')!.worker!];
    expect(there).not.toBe(here);
    expect(room.endpointOf('near')!.worker).toBe(here);
    const camera = new SyntheticSource({ ssrc: 0x101, payloadType: 96, mid: '1' });
    const play = (key = false): void => {
      for (const packet of camera.vp8Frame({ key })) publisher.send(packet);
    };
    play(true);
    await Promise.all([viewer.until(() => viewer.rtp.length === 2), neighbour.until(() => neighbour.rtp.length === 2)]);

    await engine.killWorker(there, 'killed by a test');
    expect(lost()).toEqual([
      { type: 'transportLost', peerId: 'sub', reason: 'killed by a test', transport: expect.any(Number) },
    ]);
    expect(room.isCurrent(lost()[0]!)).toBe(true);
    expect(await room.closeTransport('sub')).toBeUndefined();
    play();
    await neighbour.until(() => neighbour.rtp.length === 4);

    const again = await open('sub');
    expect(room.endpointOf('sub')!.worker).not.toBe(there);
    await again.cycle({ outbound: [videoSlot('cam')] });
    await again.until(() => {
      play(true);
      return again.rtp.length > 0;
    });
    expect((await room.stats()).transports.map(({ peerId }) => peerId).toSorted()).toEqual(['near', 'pub', 'sub']);
  });

  test('continues components elsewhere when the worker on which their room began dies', async () => {
    const engine = await start(2, { assign: alternate });
    const events: MediaRoomEvent[] = [];
    const room = await engine.openRoom('spanning', (event) => events.push(event));
    const certificate = await createCertificate();
    const viewer = await WireClient.open(room, 'sub', certificate);
    closers.push(() => viewer.close());
    await viewer.cycle({ outbound: [videoSlot('film')] });
    const frames: TappedFrame[] = [];
    let gaps = 0;
    let timestamp = 0;
    const picture = (key: boolean): void => {
      const data = Buffer.alloc(200, 1);
      data[0] = key ? 0x10 : 0x11;
      data.set([0x9d, 0x01, 0x2a], 3);
      feed.send({ timestamp: (timestamp += 3_000), data });
    };
    const feed = room.openFeed({
      trackId: 'film',
      endpointId: 'player',
      kind: 'video',
      codec: 'vp8',
      onKeyframeWanted: () => picture(true),
    });
    const tap = room.openTap({
      trackId: 'film',
      codecs: ['vp8'],
      onFrame: (frame) => void frames.push(frame),
      onGap: () => void gaps++,
    });
    picture(true);
    await until(() => frames.length > 0);
    const seen = viewer.rtp.length;
    const before = frames.length;

    // The room began on the first worker, and its only transport went to the other one.
    await engine.killWorker(1, 'killed by a test');
    expect(events.filter(({ type }) => type === 'roomFailed' || type === 'transportLost')).toEqual([]);
    picture(true);
    await until(() => frames.length > before);
    await viewer.until(() => viewer.rtp.length > seen);
    expect(gaps).toBe(1);
    const times = frames.map((frame) => frame.timestamp);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(new Set(times).size).toBe(times.length);
    await tap.close();
    feed.close();
  });

  test('crashes a room whose transports were all on one worker with it', async () => {
    const engine = await start(2);
    const events: MediaRoomEvent[] = [];
    const room = await engine.openRoom('whole', (event) => events.push(event));
    const { worker } = room.openTransport('p', { username: '1:p', password: 'x' });
    await engine.killWorker(worker!, 'killed by a test');
    expect(events.filter(({ type }) => type !== 'mediaState')).toEqual([
      { type: 'roomFailed', reason: 'killed by a test' },
    ]);
  });

  test('reports a transport as lost that has to stay where its worker has ended', async () => {
    const engine = await start(2, { assign: alternate });
    const events: MediaRoomEvent[] = [];
    const room = await engine.openRoom('spanning', (event) => events.push(event));
    const at = room.openTransport('p', { username: '1:p', password: 'x' });
    room.openTransport('q', { username: '1:q', password: 'x' });
    expect(room.openTransport('p', { username: '1:p', password: 'x' }, { at })).toEqual(at);
    await engine.killWorker(at.worker!, 'killed by a test');
    const before = events.length;
    expect(room.openTransport('p', { username: '1:p', password: 'x' }, { at }).worker).not.toBe(at.worker);
    expect(events.slice(before)).toMatchObject([{ type: 'transportLost', peerId: 'p' }]);
    expect(room.isCurrent(events.at(-1)!)).toBe(true);
  });

  test('profiles one worker while it works, and not the others', async () => {
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

  test('treats a worker that hangs as dead', async () => {
    const entry = entryOf(`
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', ({ type, call }) => {
        if (type === 'openRoom') parentPort.postMessage({ type: 'reply', call });
        if (type === 'stats') for (;;);
      });
      parentPort.postMessage({ type: 'ready', port: 1 });
    `);
    const clock = new ManualClock();
    const engine = await start(1, { entry, clock });
    const events: MediaRoomEvent[] = [];
    await engine.openRoom('stuck', (event) => events.push(event));
    clock.advance(5_000);
    expect(events).toEqual([]);
    clock.advance(1_000);
    await until(() => events.length > 0);
    expect(events).toEqual([{ type: 'roomFailed', reason: 'the media worker did not answer' }]);
  });

  test('does not take a pause of the main thread for a hung worker', async () => {
    const entry = entryOf(`
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', ({ type, call }) => {
        if (type === 'close') parentPort.close();
        else parentPort.postMessage({ type: 'reply', call });
      });
      parentPort.postMessage({ type: 'ready', port: 1 });
    `);
    const clock = new ManualClock();
    const engine = await start(1, { entry, clock });
    const events: MediaRoomEvent[] = [];
    await engine.openRoom('room', (event) => events.push(event));
    // Pauses while the watchdog's ping is unanswered, for longer than the watchdog waits.
    clock.advance(1_000);
    clock.leap(60_000);
    // Answers arrive in the order of the calls.
    await engine.stats();
    clock.advance(5_000);
    expect(events).toEqual([]);
  });

  test('gives up an uninterruptible worker, fails its rooms and starts another in its place', async () => {
    // Native code waits for the other program, and Node cannot terminate a thread in the middle of that.
    const entry = entryOf(`
      import { getEnvironmentData, parentPort } from 'node:worker_threads';
      import { spawnSync } from 'node:child_process';
      const block = () => {
        Atomics.store(getEnvironmentData('blocked'), 0, 1);
        spawnSync('sleep', ['5']);
      };
      parentPort.on('message', (message) => {
        if (message.type === 'close') process.exit();
        parentPort.postMessage({ type: 'reply', call: message.call });
        if (message.type === 'openRoom' && message.roomId === 'stuck') setImmediate(block);
      });
      parentPort.postMessage({ type: 'ready', port: 1 });
    `);
    const said: string[] = [];
    const log: Log = { ...silentLog, error: (event) => void said.push(event) };
    const clock = new ManualClock();
    const blocked = new Int32Array(new SharedArrayBuffer(4));
    setEnvironmentData('blocked', blocked);
    const engine = await start(1, { entry, log, clock });
    const events: MediaRoomEvent[] = [];
    await engine.openRoom('stuck', (event) => events.push(event));
    await until(() => Atomics.load(blocked, 0) === 1);
    clock.advance(6_000);
    clock.advance(2_000);
    await until(() => events.length > 0);
    expect(events).toEqual([{ type: 'roomFailed', reason: 'the media worker did not answer' }]);
    expect(said).toEqual(['media.worker_hangs', 'media.worker_stuck', 'media.worker_gone']);
    expect(stuckThreads()).toBe(1);

    await engine.openRoom('next', () => undefined);
    while (stuckThreads() > 0) await new Promise((resolve) => setTimeout(resolve, 50));
  }, 60_000);

  test('makes a room wait for the replacement of the only worker', async () => {
    const engine = await start(1, { clock: new ManualClock() });
    await engine.openRoom('doomed', () => undefined);
    await engine.killWorkerOf('doomed', 'killed by a test');
    const room = await engine.openRoom('next', () => undefined);
    expect((await room.stats()).transports).toEqual([]);
  });

  test('refuses a room that waits for a worker when the engine closes', async () => {
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

  test('gives up a worker that does not start', async () => {
    const entry = entryOf(`setInterval(() => {}, 1000);`);
    const clock = new ManualClock();
    const starting = start(1, { entry, clock });
    await until(() => clock.pending > 0);
    clock.advance(60_000);
    await expect(starting).rejects.toMatchObject({
      code: 'WORKER_FAILED',
      message: 'the media worker did not start within 60000 ms',
    });
  });

  test('logs a worker that does not become ready while waiting for it', async () => {
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

  test('reports a port that cannot be bound as such', async () => {
    const starting = openMediaEngine({ ...LOCAL, listenIp: '203.0.113.1', workers: 2, workerEntry });
    await expect(starting).rejects.toMatchObject({ code: 'BAD_ADDRESS' });
  });
});
