// Tests where recordings go, and what happens when that place is full, down or locked.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import { decodeServerMessage } from '@bloom/protocol';
import { Api } from '../harness/api.js';
import { apiToken, type BloomNode, startNode } from '../harness/bloom-node.js';
import { describeWith, testWith } from '../harness/needs.js';
import { receiveWebhooks, type WebhookReceiver } from '../node/support/webhook-receiver.js';
import { decodedSeconds } from './analysis.js';
import { type ObjectStoreServer, startObjectStore } from '../hls/object-store.js';
import { addComponent, credentials, finishedPart, noStore, partsOf, tracksOf, until } from './parts.js';
import { sourcesIn } from './sources.js';

jest.setTimeout(60_000);

/** An address that answers only while it is open. */
interface Gate {
  readonly url: string;
  open(port: number): void;
  close(): Promise<void>;
}

async function openGate(): Promise<Gate> {
  let target: number | undefined;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    if (target === undefined) return void socket.destroy();
    const onward = connect(target, '127.0.0.1');
    for (const end of [socket, onward]) {
      sockets.add(end);
      end.on('error', () => undefined).on('close', () => [socket, onward].forEach((other) => other.destroy()));
    }
    socket.pipe(onward).pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    open: (port) => void (target = port),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

const film = 'testsrc2=s=320x240:r=30';

describeWith(['ffmpeg'], 'Recordings when something goes wrong', () => {
  let resources: string;
  let hooks: WebhookReceiver;
  let node: BloomNode | undefined;
  let api: Api;

  beforeAll(async () => {
    resources = mkdtempSync(join(tmpdir(), 'bloom-e2e-storage-'));
    const sources = await sourcesIn(resources);
    await sources.film('short.h264', film, { seconds: 2 });
    await sources.film('long.h264', film, { seconds: 30 });
    await sources.film('large.h264', `${film},noise=alls=80:allf=t`, { seconds: 4, bitrate: '12M' });
    await sources.tone('short.ogg', 440, 2);
    await sources.tone('long.ogg', 440, 30);
  });
  beforeEach(async () => {
    hooks = await receiveWebhooks();
  });
  afterEach(async () => {
    await node?.stop();
    node = undefined;
    await hooks.close();
  });
  afterAll(() => {
    rmSync(resources, { recursive: true, force: true });
  });

  async function start(env: Record<string, string>): Promise<void> {
    node = await startNode({ env: { JF_RESOURCES_BASE_PATH: resources, ...env } });
    api = new Api(node.url);
  }

  async function recordedRoom(options: unknown, ...files: string[]): Promise<string> {
    const { body } = await api.request('POST', '/room', { videoCodec: 'h264', webhookUrl: `${hooks.url}/hook` });
    const room: string = body.data.room.id;
    await addComponent(api, room, { type: 'recording', options });
    for (const filePath of files) await addComponent(api, room, { type: 'file', options: { filePath } });
    return room;
  }

  /** Returns the state of a room's only recording. */
  const stateOf = async (room: string): Promise<string> => {
    const { body } = await api.request('GET', `/raw_recording?room=${room}`);
    expect(body.data).toHaveLength(1);
    return body.data[0].state;
  };
  const playedToTheEnd = async (room: string): Promise<void> => {
    while ((await api.room(room)).components.length > 1) await new Promise((resolve) => setTimeout(resolve, 100));
  };
  const logged = (event: string): Promise<true> =>
    until(`${event} in the log`, () => (node?.log().includes(event) === true ? true : undefined));

  test('holds uploads for a store that is down, across a restart, and completes them when it is back', async () => {
    const gate = await openGate();
    const store: ObjectStoreServer = await startObjectStore('calls');
    try {
      const env = {
        JF_S3_ENDPOINT: gate.url,
        JF_S3_BUCKET: 'calls',
        JF_S3_REGION: store.credentials.region,
        JF_S3_ACCESS_KEY_ID: store.credentials.accessKeyId,
        JF_S3_SECRET_ACCESS_KEY: store.credentials.secretAccessKey,
        JF_S3_PATH_PREFIX: 'all',
      };
      await start(env);
      const room = await recordedRoom({}, 'short.h264', 'short.ogg');
      await playedToTheEnd(room);
      expect(await stateOf(room)).toBe('recording');
      await api.deleteRoom(room);
      await logged('recording.upload_failed');
      expect(await stateOf(room)).toBe('uploading');
      const part = await finishedPart(resources, room);
      await node?.stop();
      expect(readdirSync(part)).toHaveLength(4);

      await start(env);
      await logged('recording.upload_failed');
      expect(await stateOf(room)).toBe('uploading');
      gate.open(Number(new URL(store.endpoint).port));
      const prefix = `all/${room}/${part.split('/').at(-1)}`;
      await until('the recording is gone from the disk', () => (existsSync(part) ? undefined : true));
      expect(store.objects(prefix)).toEqual([
        expect.stringMatching(/^[0-9a-f-]{36}\.(mp4|ogg)$/),
        expect.stringMatching(/^[0-9a-f-]{36}\.(mp4|ogg)$/),
        'report.json',
      ]);
      expect(await stateOf(room)).toBe('uploaded');
      expect(node?.log()).not.toContain(store.credentials.secretAccessKey);
    } finally {
      await node?.stop();
      await gate.close();
      await store.stop();
      store.remove();
    }
  });

  test('logs wrong credentials without showing them, and keeps the files', async () => {
    const store = await startObjectStore('calls');
    try {
      await start({ JF_S3_ENDPOINT: store.endpoint });
      const wrong = { ...store.credentials, accessKeyId: 'nobody', secretAccessKey: 'not-to-be-told' };
      const room = await recordedRoom({ credentials: wrong }, 'short.ogg');
      await playedToTheEnd(room);
      await api.deleteRoom(room);
      await logged('InvalidAccessKeyId');
      const part = await finishedPart(resources, room);
      expect(tracksOf(part)).toHaveLength(1);
      expect(node?.log()).not.toContain('not-to-be-told');
      expect(readFileSync(join(part, '.upload.json'), 'utf8')).not.toContain('not-to-be-told');
    } finally {
      await store.stop();
      store.remove();
    }
  });

  test('loses at most two seconds on a killed node, and lets the next one complete its recording', async () => {
    await start({ JF_S3_ENDPOINT: noStore });
    const room = await recordedRoom({ credentials }, 'long.h264', 'long.ogg');
    const began = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 5_500));
    const seconds = (performance.now() - began) / 1_000;
    await node?.kill();
    const [part] = partsOf(resources, room) as [string];
    const media = readdirSync(part).filter((name) => /\.(mp4|ogg)$/.test(name));
    expect(media).toHaveLength(2);
    for (const name of media) expect(await decodedSeconds(join(part, name))).toBeGreaterThan(seconds - 2);
    await node?.stop();

    // Simulates that a minute has passed.
    utimesSync(join(part, '.upload.json'), 0, 0);
    await start({ JF_S3_ENDPOINT: noStore });
    await finishedPart(resources, room);
    const tracks = tracksOf(part);
    expect(tracks.map(({ type }) => type).toSorted()).toEqual(['audio', 'video']);
    for (const { path } of tracks) expect(await decodedSeconds(path)).toBeGreaterThan(seconds - 2);
    const [first, second] = tracks.map(({ offsetMs }) => offsetMs) as [number, number];
    expect(Math.abs(first - second)).toBeLessThan(500);
  });

  test('ends the room of a media worker that dies, with a recording that is complete up to then', async () => {
    const faults = new URL('../node/support/worker-faults.mjs', import.meta.url);
    await start({ JF_S3_ENDPOINT: noStore, JF_MEDIA_WORKERS: '1', NODE_OPTIONS: `--import=${faults.href}` });
    const room = await recordedRoom({ credentials }, 'long.h264', 'long.ogg');
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    process.kill(node!.pid, 'SIGUSR2');
    await hooks.until('roomCrashed');
    const tracks = tracksOf(await finishedPart(resources, room));
    expect(tracks.map(({ type }) => type).toSorted()).toEqual(['audio', 'video']);
    for (const { path } of tracks) expect(await decodedSeconds(path)).toBeGreaterThan(2);
    expect((await api.request('GET', '/health')).status).toBe(200);
  });

  test('reports once that a recording of sound, with a pause, is in the store that the request named', async () => {
    const store = await startObjectStore('calls');
    try {
      await start({
        JF_S3_ENDPOINT: noStore,
        JF_S3_BUCKET: 'another',
        JF_S3_REGION: 'eu',
        JF_S3_ACCESS_KEY_ID: 'id',
        JF_S3_SECRET_ACCESS_KEY: 'not-to-be-used',
      });
      const theirs = { ...store.credentials, endpoint: store.endpoint };
      const options = { credentials: theirs, pathPrefix: 'all', audioOnly: true, notify: true };
      const room = await recordedRoom(options, 'short.ogg', 'short.h264');
      const { id } = (await api.room(room)).components[0];
      const pause = (paused: boolean) => api.request('PATCH', `/room/${room}/component/${id}`, { paused });
      expect((await pause(true)).body.data.properties).toEqual({
        subscribeMode: 'auto',
        audioOnly: true,
        paused: true,
      });
      expect((await pause(false)).status).toBe(200);
      await playedToTheEnd(room);
      await api.deleteRoom(room);
      await hooks.until('recordingUploaded');
      expect(await stateOf(room)).toBe('uploaded');
      const log = node?.log();
      await node?.stop();

      const news = hooks.received.filter(({ type }) => type.startsWith('recording'));
      expect(news.map(({ body }) => decodeServerMessage(body))).toEqual([
        {
          type: 'recordingUploaded',
          roomId: room,
          componentId: id,
          prefix: expect.stringMatching(`^all/${room}/part_`),
          files: [expect.stringMatching(/^[0-9a-f-]{36}\.ogg$/), 'report.json'],
        },
      ]);
      const { prefix, files } = decodeServerMessage(news[0]!.body) as { prefix: string; files: string[] };
      expect(store.objects(prefix)).toEqual(files);
      expect(log).not.toContain(store.endpoint);
    } finally {
      await node?.stop();
      await store.stop();
      store.remove();
    }
  });

  test('records only the chosen tracks with manual subscription', async () => {
    await start({ JF_S3_ENDPOINT: noStore });
    const room = await recordedRoom({ credentials, subscribeMode: 'manual' }, 'long.ogg', 'long.h264');
    const { components } = await api.room(room);
    const [recording, tone] = components.map(({ id }: { id: string }) => id) as [string, string];
    const subscribed = await fetch(`${api.url}/room/${room}/component/${recording}/subscribe`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({ origins: [tone, 'somebody-who-never-comes'] }),
    });
    expect(subscribed.status).toBe(201);
    expect(await subscribed.text()).toBe('Successfully subscribed for tracks');
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    await api.deleteRoom(room);
    const tracks = tracksOf(await finishedPart(resources, room));
    expect(tracks.map(({ type, origin }) => [type, origin])).toEqual([['audio', tone]]);
  });

  testWith(
    ['tmpfs mounts'],
    'a full disk ends the recording, written data stays, and the room carries on',
    async () => {
      const disk = join(resources, 'raw_recordings');
      rmSync(disk, { recursive: true, force: true });
      mkdirSync(disk);
      expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=5m', 'tmpfs', disk]).status).toBe(0);
      try {
        await start({ JF_S3_ENDPOINT: noStore });
        const room = await recordedRoom({ credentials }, 'large.h264', 'short.ogg');
        await hooks.until('componentCrashed');
        const { components } = await api.room(room);
        expect(components.map(({ type }: { type: string }) => type)).toContain('file');
        expect(components.map(({ type }: { type: string }) => type)).not.toContain('recording');
        await logged('ENOSPC');

        const part = await finishedPart(resources, room);
        const tracks = tracksOf(part);
        expect(tracks.map(({ type }) => type).toSorted()).toEqual(['audio', 'video']);
        // The disk holds two fragments of 2 MiB, with 26 pictures each.
        for (const { path } of tracks) expect(await decodedSeconds(path)).toBeGreaterThan(1.5);
      } finally {
        await node?.stop();
        spawnSync('umount', [disk]);
      }
    },
  );
});
