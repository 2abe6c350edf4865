import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import { startTestNode, type Answer, type TestNode } from './testing/test-node.js';

// Real sockets, on a machine that other tests keep busy.
jest.setTimeout(30_000);

let node: TestNode;
afterEach(() => node.dispose());

const s3 = { accessKeyId: 'id', secretAccessKey: 'secret', region: 'eu', bucket: 'calls' };

const add = (roomId: string, type: string, options?: unknown): Promise<Answer> =>
  node.request('POST', `/room/${roomId}/component`, { type, options });

/** A file from the SDKs' tests: empty, which is enough to create a component. */
async function source(name: string, bytes = Buffer.alloc(0)): Promise<void> {
  const directory = join(node.settings.resourcesPath, 'file_component_sources');
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, name), bytes);
}

const refusal = ({ status, body }: Answer): unknown => [status, body.errors];

describe('a file component over HTTP', () => {
  test('creates a file component with the properties that clients compare', async () => {
    node = await startTestNode();
    await source('video.h264');
    await source('audio.ogg');
    const roomId = await node.createRoom();
    const { status, body } = await add(roomId, 'file', { filePath: 'video.h264' });
    expect(status).toBe(201);
    expect(body.data).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      type: 'file',
      properties: { filePath: 'video.h264', framerate: 30 },
      tracks: [],
    });
    const audio = await add(roomId, 'file', { filePath: 'audio.ogg', framerate: null });
    expect(audio.body.data.properties).toEqual({ filePath: 'audio.ogg', framerate: null });
  });

  test('refuses a file component with the texts that clients compare', async () => {
    node = await startTestNode();
    await source('video.h264');
    await source('audio.ogg');
    await source('text.txt');
    const roomId = await node.createRoom();
    const ask = async (options?: unknown): Promise<unknown> => refusal(await add(roomId, 'file', options));

    expect(await ask()).toEqual([400, 'Required field "filePath" missing']);
    expect(await ask({ filePath: 'video.h264', framerate: '20' })).toEqual([400, 'Invalid framerate passed']);
    expect(await ask({ filePath: 'video.h264', framerate: 29.97 })).toEqual([400, 'Invalid framerate passed']);
    expect(await ask({ filePath: '', framerate: 'x' })).toEqual([400, 'Invalid framerate passed']);
    expect(await ask({ filePath: 'video.h264', framerate: -20 })).toEqual([400, 'Invalid framerate passed']);
    expect(await ask({ filePath: '../video.h264' })).toEqual([400, 'Invalid file path']);
    expect(await ask({ filePath: 'nowhere.h264' })).toEqual([404, 'File not found']);
    expect(await ask({ filePath: 'text.txt' })).toEqual([400, 'Unsupported file type']);
    expect(await ask({ filePath: 'audio.ogg', framerate: 20 })).toEqual([
      400,
      'Attempted to set framerate for audio component which is not supported.',
    ]);
    expect(await ask('video.h264')).toEqual([400, 'Invalid request body structure']);
    expect((await node.request('GET', `/room/${roomId}`)).body.data.components).toEqual([]);
  });

  test('announces its track before the room is deleted, however soon that is', async () => {
    node = await startTestNode();
    await source('video.h264', Buffer.alloc(100_000, 1));
    const server = await node.serverSocket();
    const roomId = await node.createRoom();
    await add(roomId, 'file', { filePath: 'video.h264' });
    await node.request('DELETE', `/room/${roomId}`);
    expect(await server.untilNews('roomDeleted')).toEqual(['roomCreated', 'trackAdded', 'trackRemoved', 'roomDeleted']);
  });

  test('removes itself at the end of its file', async () => {
    node = await startTestNode();
    await source('video.h264');
    const server = await node.serverSocket();
    const roomId = await node.createRoom();
    await add(roomId, 'file', { filePath: 'video.h264' });
    expect(await server.untilNews('trackRemoved')).toEqual(['roomCreated', 'trackAdded', 'trackRemoved']);
    expect((await node.request('GET', `/room/${roomId}`)).body.data.components).toEqual([]);
  });

  test('crashes alone if its file cannot be played, and is reported after its track has gone', async () => {
    node = await startTestNode();
    await source('audio.ogg', Buffer.from('no music'));
    const server = await node.serverSocket();
    const roomId = await node.createRoom();
    expect((await add(roomId, 'file', { filePath: 'audio.ogg' })).status).toBe(201);
    expect(await server.untilNews('componentCrashed')).toEqual([
      'roomCreated',
      'trackAdded',
      'trackRemoved',
      'componentCrashed',
    ]);
    expect((await node.request('GET', `/room/${roomId}`)).body.data.components).toEqual([]);
  });
});

describe('a recording component over HTTP', () => {
  test('creates, subscribes and refuses a recording with the texts that clients compare', async () => {
    node = await startTestNode();
    const roomId = await node.createRoom({ videoCodec: 'h264' });
    const ask = async (options?: unknown): Promise<unknown> => refusal(await add(roomId, 'recording', options));
    expect(await ask()).toEqual([
      400,
      'S3 credentials has to be passed either by request or at application startup as envs',
    ]);
    expect(await ask({ credentials: { ...s3, region: undefined } })).toEqual([
      400,
      expect.stringMatching(/Invalid request body structure|Required field "region" missing/),
    ]);
    // The codec is checked before the options.
    for (const open of [await node.createRoom(), await node.createRoom({ videoCodec: 'vp8' })]) {
      expect(refusal(await add(open, 'recording', 'garbage'))).toEqual([
        400,
        `Incompatible video codec enforced in room ${open}`,
      ]);
    }
    for (const options of ['garbage', { credentials: 'x' }, { credentials: s3, subscribeMode: 'some' }]) {
      expect(await ask(options)).toEqual([400, 'Invalid request body structure']);
    }
    expect(await ask({ credentials: s3, pathPrefix: '../elsewhere' })).toEqual([400, 'Invalid request body structure']);

    const { status, body } = await add(roomId, 'recording', { credentials: s3, subscribeMode: 'manual' });
    expect(status).toBe(201);
    expect(body.data).toMatchObject({ type: 'recording', properties: { subscribeMode: 'manual' }, tracks: [] });
    expect(Object.keys(body.data.properties)).toEqual(['subscribeMode']);
    // The limit is also checked before the options.
    expect(await ask('garbage')).toEqual([400, `Reached recording components limit for component in room ${roomId}`]);
    const path = `/room/${roomId}/component/${body.data.id}`;
    expect(await node.request('POST', `${path}/subscribe`, { origins: ['nobody'] })).toEqual({
      status: 201,
      body: 'Successfully subscribed for tracks',
    });
    expect((await node.request('DELETE', path)).status).toBe(204);
    const automatic = await add(roomId, 'recording', { credentials: s3 });
    expect(automatic.body.data.properties).toEqual({ subscribeMode: 'auto' });
    const again = await node.request('POST', `/room/${roomId}/component/${automatic.body.data.id}/subscribe`, {
      origins: [],
    });
    expect(refusal(again)).toEqual([
      400,
      `Component ${automatic.body.data.id} option \`subscribe_mode\` is set to :auto`,
    ]);
  });

  test('takes credentials and prefix from the environment or the request, never from both', async () => {
    node = await startTestNode({
      JF_S3_BUCKET: 'calls',
      JF_S3_REGION: 'eu',
      JF_S3_ACCESS_KEY_ID: 'id',
      JF_S3_SECRET_ACCESS_KEY: 'secret',
      JF_S3_PATH_PREFIX: 'prefix',
    });
    const roomId = await node.createRoom({ videoCodec: 'h264' });
    expect(refusal(await add(roomId, 'recording', { credentials: s3 }))).toEqual([
      400,
      'Conflicting S3 credentials supplied via environment variables and the REST API. Overrides on existing values are disallowed',
    ]);
    expect(refusal(await add(roomId, 'recording', { pathPrefix: 'prefix' }))).toEqual([
      400,
      'Conflicting S3 path prefix supplied via environment variables and the REST API. Overrides on existing values are disallowed',
    ]);
    expect((await add(roomId, 'recording')).status).toBe(201);
  });

  test('refuses a recording where recording is off, and keeps the room', async () => {
    node = await startTestNode({ JF_RECORDING_USED: 'false' });
    const roomId = await node.createRoom({ videoCodec: 'h264' });
    expect(refusal(await add(roomId, 'recording', { credentials: s3 }))).toEqual([
      400,
      'Components of type recording are disabled',
    ]);
    expect((await node.request('GET', `/room/${roomId}`)).status).toBe(200);
  });

  test('reports an upload behind the events of its room that wait until its node may act for it', async () => {
    let mayStore: () => void = () => undefined;
    const stores = new Promise<void>((resolve) => (mayStore = resolve));
    const store = createServer(
      (request, response) => void request.resume().on('end', () => stores.then(() => response.end())),
    );
    store.unref();
    await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
    node = await startTestNode({ JF_S3_ENDPOINT: `http://127.0.0.1:${(store.address() as AddressInfo).port}` });
    await source('audio.ogg', await readFile(new URL('./testing/tone.ogg', import.meta.url)));
    const roomId = await node.createRoom({ videoCodec: 'h264' });
    const server = await node.serverSocket();
    server.send({ type: 'subscribeRequest', eventType: 'recording' });
    const { body } = await add(roomId, 'recording', { credentials: s3, notify: true });
    await add(roomId, 'file', { filePath: 'audio.ogg' });
    const { token } = await node.addPeer(roomId);
    await server.untilNews('trackRemoved');
    await node.request('DELETE', `/room/${roomId}/component/${body.data.id}`);
    const { fence } = node.rooms;
    let isFenced = true;
    const held: string[] = [];
    const pass = fence.pass.bind(fence);
    fence.watcher = { changed: () => undefined, isFenced: () => isFenced };
    fence.pass = (event, publish) => {
      held.push(event.type);
      pass(event, publish);
    };
    await (await node.peerSocket()).authenticate(token);
    mayStore();
    await until(() => [...held, ...server.news].includes('recordingUploaded'));
    isFenced = false;
    fence.release(roomId);
    expect((await server.untilNews('recordingUploaded')).slice(-2)).toEqual(['peerConnected', 'recordingUploaded']);
    store.close();
  });

  test('records what a file plays, and leaves it on disk while the store is down', async () => {
    node = await startTestNode({ JF_S3_ENDPOINT: 'http://127.0.0.1:1' });
    await source('audio.ogg', await readFile(new URL('./testing/tone.ogg', import.meta.url)));
    const roomId = await node.createRoom({ videoCodec: 'h264' });
    const server = await node.serverSocket();
    await add(roomId, 'recording', { credentials: s3 });
    await add(roomId, 'file', { filePath: 'audio.ogg' });
    await server.untilNews('trackRemoved');
    await node.request('DELETE', `/room/${roomId}`);

    const room = join(node.settings.resourcesPath, 'raw_recordings', roomId);
    let files: string[] = [];
    while (!files.includes('report.json')) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      const [part] = await readdir(room).catch(() => []);
      files = part === undefined ? [] : await readdir(join(room, part));
    }
    const [part] = await readdir(room);
    const { tracks } = JSON.parse(await readFile(join(room, part!, 'report.json'), 'utf8'));
    const [[name, track]] = Object.entries(tracks) as [[string, Record<string, number>]];
    expect(track).toMatchObject({ type: 'audio', encoding: 'OPUS', clock_rate: 48_000, start_timestamp: 0 });
    expect(track['end_timestamp']! / 48_000).toBeGreaterThan(0.3);
    expect((await readFile(join(room, part!, name))).toString('latin1', 0, 4)).toBe('OggS');
  });
});
