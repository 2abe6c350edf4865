// Tests streams and recordings of a room, requested at the node that does not own it.
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { BloomClient } from '@bloom/server-sdk';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { apiToken } from '../harness/bloom-node.js';
import { launchChromium } from '../harness/chromium.js';
import { nightly, testWith } from '../harness/needs.js';
import { colours } from '../page/driver-api.js';
import { type Member, type Pair, startPair } from './pair.js';
import { describeStreams, fetchFrom } from './support.js';
import { Watcher } from './watcher.js';

// Two nodes on a machine busy with other tests.
jest.setTimeout(60_000);

const watchedMs = nightly ? 60_000 : 5_000;

describeStreams('Streams through a node that does not own the room', () => {
  let pair: Pair;
  let one: Member;
  let two: Member;
  const rooms: string[] = [];

  beforeAll(async () => {
    pair = await startPair();
    ({ one, two } = pair);
  });
  afterAll(() => pair?.stop());
  afterEach(async () => {
    for (const room of rooms.splice(0)) await one.api.request('DELETE', `/room/${room}`);
  });

  /** Creates a room on the second node with a stream and two files, all through the first node. */
  async function streamedRoom(options: Record<string, unknown>): Promise<{ room: string; component: string }> {
    const room = await pair.roomOnTwo();
    rooms.push(room);
    const add = async (type: string, given: unknown): Promise<string> => {
      const { status, body } = await one.api.request('POST', `/room/${room}/component`, { type, options: given });
      if (status !== 201) throw new Error(`${type}: ${status} ${JSON.stringify(body)}`);
      return body.data.id;
    };
    const component = await add('hls', options);
    await add('file', { filePath: 'red.h264', framerate: 15 });
    await add('file', { filePath: 'tone.ogg' });

    return { room, component };
  }

  async function playable(room: string): Promise<void> {
    const deadline = Date.now() + 20_000;
    while (Date.now() < deadline) {
      if ((await one.api.room(room)).components[0].properties.playable === true) return;
      await delay(100);
    }
    throw new Error('the stream did not become playable within 20 s');
  }

  test('makes a stream added through another node playable, with the same files as at the owner', async () => {
    const heard: string[] = [];
    let listening: () => void = () => undefined;
    const subscribed = new Promise<void>((resolve) => (listening = resolve));
    const events = new BloomClient({ url: two.url, token: apiToken }).notifications({ onSubscribed: listening });
    const reading = (async () => {
      for await (const { type } of events) {
        heard.push(type);
        if (type === 'hlsPlayable') return;
      }
    })();
    await subscribed;
    const { room, component } = await streamedRoom({ lowLatency: true });
    await Promise.race([reading, delay(20_000)]);
    expect(heard).toContain('hlsPlayable');

    const file = (name: string) => fetchFrom(one.url, `/hls/${room}/${name}`);
    const master = await file('index.m3u8');
    expect(master).toMatchObject({ status: 200, type: 'application/vnd.apple.mpegurl', cacheControl: 'no-store' });
    const media = master.text.trim().split('\n').at(-1)!;
    const playlist = (await file(media)).text;
    const header = /#EXT-X-MAP:URI="([^"]+)"/.exec(playlist)![1]!;
    const segment = /^muxed_segment_\d+_\S+\.m4s$/m.exec(playlist)![0];
    expect(await file(header)).toMatchObject({ status: 200, type: 'video/mp4', cacheControl: null });
    const [here, there] = [await file(segment), await fetchFrom(two.url, `/hls/${room}/${segment}`)];
    expect(here.text.length).toBeGreaterThan(10_000);
    expect(here.text).toBe(there.text);

    const hinted = /#EXT-X-PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/.exec(playlist)![1]!;
    expect((await file(hinted)).status).toBe(200);
    const newest = Number(
      /muxed_segment_(\d+)_main_\d_part/.exec((await file(media)).text.split('PRELOAD').at(-1)!)![1],
    );
    // Forty requests wait for the same part, while another does not have to wait.
    const waiting = Array.from({ length: 40 }, () => file(`${media}?_HLS_msn=${newest + 1}&_HLS_part=1`));
    const begun = performance.now();
    expect((await file(header)).status).toBe(200);
    expect(performance.now() - begun).toBeLessThan(1_000);
    for (const { status, text } of await Promise.all(waiting)) {
      expect(status).toBe(200);
      expect(text).toContain(`_${newest + 1}_main_1_part.m4s"`);
    }

    for (const name of [
      'nothing.m4s',
      '..%2Fx',
      `${media}?_HLS_msn=${newest + 90}&_HLS_part=0`,
      `${media}?_HLS_msn=x`,
    ]) {
      const [mine, owners] = [await file(name), await fetchFrom(two.url, `/hls/${room}/${name}`)];
      expect({ status: mine.status, text: mine.text }).toEqual({ status: owners.status, text: owners.text });
      expect(mine.status).toBeGreaterThanOrEqual(400);
    }
    expect((await one.api.request('DELETE', `/room/${room}/component/${component}`)).status).toBe(204);
    expect((await file('index.m3u8')).status).toBe(404);
    expect((await fetchFrom(one.url, '/hls/nowhere/index.m3u8')).status).toBe(404);
  });

  test('lets a node that does not hold a recording list, play and remove it', async () => {
    const { room } = await streamedRoom({ persistent: true });
    await playable(room);
    const { token } = (await one.api.request('POST', `/room/${room}/viewer`)).body.data;
    for (const { url } of [one, two]) {
      expect((await fetchFrom(url, `/hls/${room}/~${token}/main.m3u8`, { authorization: '' })).status).toBe(200);
    }
    expect((await fetchFrom(one.url, `/recording/${room}/index.m3u8`)).status).toBe(404);
    await one.api.deleteRoom(room);
    rooms.length = 0;
    const listed = async (scope = '') => (await one.api.request('GET', `/recording${scope}`)).body;
    while (!(await listed('?scope=cluster')).data.includes(room)) await delay(50);
    expect(await listed()).toEqual({ data: [] });
    expect((await listed('?scope=cluster')).unreachable).toEqual([]);

    const file = (name: string) => fetchFrom(one.url, `/recording/${room}/${name}`);
    const playlist = await file('main.m3u8');
    expect(playlist).toMatchObject({ status: 200, type: 'application/vnd.apple.mpegurl' });
    expect(playlist.text).toContain('#EXT-X-ENDLIST');
    const segment = /^muxed_segment_\d+_\S+\.m4s$/m.exec(playlist.text)![0];
    const whole = await file(segment);
    expect(whole.status).toBe(200);
    expect(whole.text).toBe((await fetchFrom(two.url, `/recording/${room}/${segment}`)).text);
    const anonymous = { authorization: '' };
    expect((await fetchFrom(one.url, `/recording/${room}/~${token}/main.m3u8`, anonymous)).text).toBe(playlist.text);
    expect((await fetchFrom(two.url, `/recording/${room}/~${token}/main.m3u8`, anonymous)).status).toBe(200);
    const range = await fetchFrom(one.url, `/recording/${room}/${segment}`, { range: 'bytes=4-7' });
    expect(range.status).toBe(206);
    expect(range.text).toBe('moof');

    expect((await one.api.request('DELETE', `/recording/${room}`)).status).toBe(204);
    expect((await file('main.m3u8')).status).toBe(404);
    expect((await listed('?scope=cluster')).data).toEqual([]);
  });

  test('opens the newest recording of an id on every node, keeps the older one, and removes completely', async () => {
    const { body } = await one.api.request('POST', '/room', { videoCodec: 'h264', roomId: 'weekly' });
    rooms.push('weekly');
    const [owner, other] = body.data.service_address === two.host ? [two, one] : [one, two];
    const older = join(other.resources, 'recordings', 'weekly');
    await mkdir(older, { recursive: true });
    const lines = ['#EXTM3U', '#EXT-X-PROGRAM-DATE-TIME:2026-01-02T03:04:05.678Z', 'old.m4s', '#EXT-X-ENDLIST', ''];
    await writeFile(join(older, 'main.m3u8'), lines.join('\n'));
    const playlist = (id: string, at: Member) => fetchFrom(at.url, `/recording/${id}/main.m3u8`);
    for (const at of [one, two]) expect((await playlist('weekly', at)).text).toContain('old.m4s');

    const add = (type: string, options: unknown) =>
      one.api.request('POST', '/room/weekly/component', { type, options });
    await add('hls', { persistent: true });
    await add('file', { filePath: 'red.h264', framerate: 15 });
    await playable('weekly');
    await one.api.deleteRoom('weekly');
    const listed = async (): Promise<string[]> =>
      ((await owner.api.request('GET', '/recording?scope=cluster')).body.data as string[])
        .filter((id) => id.startsWith('weekly'))
        .toSorted();
    const renamed = 'weekly-20260102T030405Z';
    while ((await listed()).length < 2) await delay(50);
    expect(await listed()).toEqual(['weekly', renamed]);
    const newer = (await playlist('weekly', owner)).text;
    expect(newer).toContain('muxed_segment_0_main.m4s');
    expect((await playlist('weekly', other)).text).toBe(newer);
    for (const at of [one, two]) expect((await playlist(renamed, at)).text).toContain('old.m4s');

    // Both nodes have the id, as after a network split.
    await mkdir(older, { recursive: true });
    await writeFile(join(older, 'main.m3u8'), lines.join('\n'));
    expect((await other.api.request('DELETE', '/recording/weekly')).status).toBe(204);
    for (const at of [one, two]) expect((await playlist('weekly', at)).status).toBe(404);
    expect(await listed()).toEqual([renamed]);
    expect((await owner.api.request('DELETE', `/recording/${renamed}`)).status).toBe(204);
    expect(await listed()).toEqual([]);
  });

  test('sets the older recording of an id aside at once when a node joins with a newer one', async () => {
    const joining = await startPair({}, async (alive, resources) => {
      const folder = join(resources, 'recordings', 'show');
      await mkdir(folder, { recursive: true });
      const start = alive === 'one' ? '2024-01-01T00:00:00Z' : '2025-01-01T00:00:00Z';
      await writeFile(
        join(folder, 'main.m3u8'),
        ['#EXTM3U', `#EXT-X-PROGRAM-DATE-TIME:${start}`, '#EXT-X-ENDLIST', ''].join('\n'),
      );
    });
    try {
      const recordings = join(joining.one.resources, 'recordings');
      while ((await readdir(recordings)).includes('show')) await delay(50);
      expect(await readdir(recordings)).toEqual(['show-20240101T000000Z']);
    } finally {
      await joining.stop();
    }
  });

  testWith(
    { needs: ['chromium'], timeoutMs: 240_000 },
    'hls.js plays through another node with less than 3 s of latency and no stall',
    async () => {
      const { room } = await streamedRoom({ lowLatency: true });
      await playable(room);
      const browser = await launchChromium();
      const watcher = await Watcher.open(browser);
      try {
        await watcher.watch(`${one.url}/hls/${room}/index.m3u8`, apiToken);
        await watcher.sees(colours.red, [0.5, 0.5]);
        const first = await watcher.report();
        await watcher.page.waitForTimeout(watchedMs);
        const last = await watcher.report();
        expect(last.errors).toEqual([]);
        expect(last.stalls).toBe(0);
        expect(last.worstLatencyMs).toBeLessThan(3_000);
        expect(last.soundBytes).toBeGreaterThan(first.soundBytes);
      } finally {
        await watcher.close();
        await browser.close();
      }
    },
  );

  test('names a frozen or dead owner in a 503, and continues on the other node', async () => {
    const { room } = await streamedRoom({ lowLatency: true });
    await playable(room);
    const file = (name: string) => fetchFrom(one.url, `/hls/${room}/${name}`);
    const unreachable = {
      status: 503,
      text: JSON.stringify({ errors: `Room ${room} is on two@127.0.0.1, which is currently unreachable` }),
    };
    process.kill(two.pid, 'SIGSTOP');
    const frozen = file('main.m3u8');
    expect((await one.api.request('GET', '/health')).status).toBe(200);
    expect(await frozen).toMatchObject(unreachable);
    const again = performance.now();
    expect(await file('main.m3u8')).toMatchObject(unreachable);
    expect(performance.now() - again).toBeLessThan(500);
    process.kill(two.pid, 'SIGCONT');
    let playlist = await file('main.m3u8');
    // The node counts as silent until something arrives from it.
    for (; playlist.status === 503; playlist = await file('main.m3u8')) await delay(50);
    const { text } = playlist;
    const next = Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)![1]) + text.split('#EXTINF').length;

    const blocked = file(`main.m3u8?_HLS_msn=${next}&_HLS_part=5`);
    await delay(100);
    const begun = performance.now();
    await two.kill();
    expect(await blocked).toMatchObject(unreachable);
    expect(await file('index.m3u8')).toMatchObject(unreachable);
    expect(performance.now() - begun).toBeLessThan(3_000);
    rooms.length = 0;
  });
});
