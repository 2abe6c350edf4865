// Tests faults of a stream, reported to a real webhook receiver: uploads that succeed or fail, a compositor that is
// killed or hangs, a full disk. The room survives each time.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { receiveWebhooksAt, type WebhookReceiver } from '../cluster/webhooks.js';
import { until } from '../cluster/until.js';
import { Api } from '../harness/api.js';
import { type BloomNode, startNode } from '../harness/bloom-node.js';
import { missing, testWith } from '../harness/needs.js';
import { type ObjectStoreServer, startObjectStore } from './object-store.js';
import { makeSources } from './sources.js';
import { describeStreams, fetchFrom } from './support.js';

jest.setTimeout(60_000);

const canMount = missing(['tmpfs mounts']) === undefined;

describeStreams('Streams when something goes wrong', () => {
  let node: BloomNode;
  let api: Api;
  let hooks: WebhookReceiver;
  let store: ObjectStoreServer;
  /** A separate file system where possible, because a test fills it. */
  let resources: string;

  beforeAll(async () => {
    resources = mkdtempSync(join(tmpdir(), 'bloom-faults-'));
    if (canMount) {
      expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', resources]).status).toBe(0);
    }
    [store, hooks] = await Promise.all([
      startObjectStore('streams'),
      receiveWebhooksAt('127.0.0.1'),
      makeSources(resources),
    ]);
    node = await startNode({ env: { JF_RESOURCES_BASE_PATH: resources, JF_S3_ENDPOINT: store.endpoint } });
    api = new Api(node.url);
  });
  afterAll(async () => {
    await node?.stop();
    await store?.stop();
    store?.remove();
    await hooks?.close();
    if (canMount) spawnSync('umount', [resources]);
    rmSync(resources, { recursive: true, force: true });
  });
  afterEach(async () => {
    for (const { id } of (await api.request('GET', '/room')).body.data) await api.deleteRoom(id);
  });

  async function streamed(options: Record<string, unknown> = {}): Promise<string> {
    const created = await api.request('POST', '/room', { videoCodec: 'h264', webhookUrl: `${hooks.url}/hook` });
    const room: string = created.body.data.room.id;
    await stream(room, options);
    for (const filePath of ['red.h264', 'tone.ogg']) {
      const { status } = await api.request('POST', `/room/${room}/component`, { type: 'file', options: { filePath } });
      expect(status).toBe(201);
    }
    return room;
  }
  async function stream(room: string, options: Record<string, unknown> = {}): Promise<void> {
    const { status } = await api.request('POST', `/room/${room}/component`, { type: 'hls', options });
    expect(status).toBe(201);
  }
  const heard = (room: string): string[] =>
    hooks.heard.filter((line) => line.endsWith(room)).map((line) => line.split(' ')[0]!);
  const hears = (type: string, room: string): Promise<boolean> =>
    until(`${type} of ${room}`, () => heard(room).includes(type), { limitMs: 20_000, detail: () => node.log() });
  const list = async (room: string): Promise<string> => (await fetchFrom(node.url, `/hls/${room}/main.m3u8`)).text;

  test('notifies when an upload has arrived, is refused, or finds no store', async () => {
    const { credentials } = store;
    const [good, badKey, noBucket, down] = await Promise.all([
      streamed({ s3: credentials }),
      streamed({ s3: { ...credentials, accessKeyId: 'stranger' } }),
      streamed({ s3: { ...credentials, bucket: 'elsewhere' }, persistent: true }),
      streamed({ s3: credentials }),
    ]);
    for (const room of [good, badKey, noBucket, down]) await hears('hlsPlayable', room);
    for (const room of [good, badKey, noBucket]) await api.deleteRoom(room);
    await hears('hlsUploaded', good);
    await hears('hlsUploadCrashed', badKey);
    await hears('hlsUploadCrashed', noBucket);
    const files = store.objects(good);
    const media = files.find((name) => name.endsWith('.m3u8') && name !== 'index.m3u8')!;
    // Other streams of that room id have other names.
    expect(media).toMatch(/^main-\w+\.m3u8$/);
    const segment = `muxed_segment_0_${media.replace('.m3u8', '.m4s')}`;
    expect(files).toEqual(expect.arrayContaining(['index.m3u8', segment]));
    expect(store.objects(badKey)).toEqual([]);
    for (const room of [good, badKey, noBucket]) {
      const [uploaded, ended] = [heard(room).at(-1)!, heard(room).indexOf('roomDeleted')];
      expect(uploaded).toMatch(/^hlsUpload/);
      expect(ended).toBe(heard(room).length - 2);
    }
    await store.stop();
    await api.deleteRoom(down);
    await hears('hlsUploadCrashed', down);

    // Persistent streams are kept whether or not they were uploaded; the rest is removed.
    await until('the directories are removed', () => readdirSync(join(resources, 'temporary_hls')).length === 0);
    const kept = async (name: string) => (await fetchFrom(node.url, `/recording/${noBucket}/${name}`)).text;
    expect(await kept((await kept('index.m3u8')).trim().split('\n').at(-1)!)).toContain('#EXT-X-ENDLIST');
    expect(node.log()).not.toContain(credentials.secretAccessKey);
  });

  test('ends only its own stream when a compositor is killed or hangs', async () => {
    const [killed, hung, other] = [await streamed(), await streamed(), await streamed()];
    // They start one after another, in the order of their streams.
    for (const room of [killed, hung, other]) await hears('hlsPlayable', room);
    const compositors = childrenOf(node.pid);
    expect(compositors).toHaveLength(3);

    process.kill(compositors[1]!, 'SIGSTOP');
    process.kill(compositors[0]!, 'SIGABRT');
    await hears('componentCrashed', killed);
    const types = async (room: string): Promise<string[]> =>
      (await api.room(room)).components.map(({ type }: { type: string }) => type).toSorted();
    expect(await types(killed)).toEqual(['file', 'file']);
    expect((await fetchFrom(node.url, `/hls/${killed}/index.m3u8`)).status).toBe(404);
    // Its room accepts a new one.
    await stream(killed);
    await until('the new stream plays', async () => (await list(killed)).includes('#EXTINF'));

    const before = (await list(other)).split('#EXTINF').length;
    await hears('componentCrashed', hung);
    expect(await types(hung)).toEqual(['file', 'file']);
    expect((await list(other)).split('#EXTINF').length).toBeGreaterThan(before + 1);
    expect(heard(other)).not.toContain('componentCrashed');
    await until('the compositor that hung is gone', () => !childrenOf(node.pid).includes(compositors[1]!));
  });

  testWith(['tmpfs mounts'], 'a full disk ends the stream with a reason, and written data plays', async () => {
    const room = await streamed({ persistent: true });
    await hears('hlsPlayable', room);
    // Fills all free space, in ever smaller pieces.
    mkdirSync(join(resources, 'filler'));
    for (let size = 32 << 20, i = 0; size >= 1; i += 1) {
      try {
        writeFileSync(join(resources, 'filler', String(i)), Buffer.alloc(size));
      } catch {
        rmSync(join(resources, 'filler', String(i)), { force: true });
        size >>= 1;
      }
    }
    await hears('componentCrashed', room);
    expect((await api.room(room)).components).toHaveLength(2);
    // The notification may overtake the log line.
    await until('the log says why', () => node.log().includes('ENOSPC'));
    await api.deleteRoom(room);

    const directory = join(resources, 'recordings', room);
    const playlist = readFileSync(join(directory, 'main.m3u8'), 'utf8');
    expect(playlist.endsWith('#EXT-X-ENDLIST\n')).toBe(true);
    const listed = playlist.match(/^muxed_segment_\d+_main\.m4s$/gm) ?? [];
    expect(listed.length).toBeGreaterThan(0);
    expect(
      readdirSync(directory)
        .filter((name) => name.endsWith('.m4s'))
        .toSorted(),
    ).toEqual(listed.toSorted());
    const decoded = spawnSync('ffmpeg', ['-v', 'error', '-i', join(directory, 'index.m3u8'), '-f', 'null', '-']);
    expect({ status: decoded.status, stderr: decoded.stderr.toString() }).toEqual({ status: 0, stderr: '' });
    expect((await fetchFrom(node.url, `/recording/${room}/${listed.at(-1)}`)).status).toBe(200);
    rmSync(join(resources, 'filler'), { recursive: true });
  });
});

/** Returns the children of this process, oldest first. */
function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');

  return text.trim().split(' ').map(Number);
}
