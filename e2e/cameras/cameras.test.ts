// Tests cameras in a room, with a real RTSP server and a browser that watches.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { freeUdpRange } from '@bloom/net/testing';
import { until } from '../cluster/until.js';
import { promise } from '../harness/measurements.js';
import { missing } from '../harness/needs.js';
import type { Peer } from '../harness/peer.js';
import { browserSuite } from '../harness/stage.js';
import { addComponent } from '../recordings/parts.js';
import { Camera } from './camera.js';
import { openJitter } from './jitter.js';

const password = 'p@ss:w/rd';
/** The test cameras send a key frame first and then every second. */
const pictureBoundMs = 1_500;
const reconnectDelay = 500;

browserSuite('Cameras', { needs: ['cameras', 'node-av'] }, (stage) => {
  let camera: Camera;
  let locked: Camera;
  beforeAll(async () => {
    if (missing(['cameras', 'node-av']) !== undefined) return;
    [camera, locked] = await Promise.all([Camera.start(), Camera.start('admin', password)]);
  });
  afterAll(async () => {
    await camera?.kill();
    await locked?.kill();
  });

  interface Track {
    id: string;
    type: 'audio' | 'video';
  }

  const tracksOf = async (room: string): Promise<Track[]> =>
    (await stage.api.room(room)).components.flatMap(({ tracks }: { tracks: Track[] }) => tracks);

  async function published(room: string, count: number): Promise<Record<Track['type'], string>> {
    const tracks = await until(`${count} tracks`, async () => {
      const all = await tracksOf(room);
      return all.length === count && all;
    });
    return Object.fromEntries(tracks.map(({ type, id }) => [type, id])) as Record<Track['type'], string>;
  }

  /** Creates a room with a viewer and a camera. */
  async function watched(
    sourceUri: string,
    options: object = {},
  ): Promise<{ ann: Peer; room: string; component: string }> {
    const { ann, room } = await stage.call(['ann'], { videoCodec: 'h264' });
    const component = await addComponent(stage.api, room, {
      type: 'rtsp',
      options: { sourceUri, reconnectDelay, ...options },
    });
    return { ann, room, component };
  }

  test.each(['/aac', '/g711', '/opus'] as const)(
    'lets peers see and hear a camera with H.264 and the sound of %s',
    async (mount) => {
      const { ann, room } = await watched(camera.url(mount));
      const { video, audio } = await published(room, 2);
      const publishedAt = Date.now();
      await ann.plays(video, 'red');
      promise('tracks of a camera to its picture', Date.now() - publishedAt, pictureBoundMs);
      await ann.sounds(audio, 440);
    },
  );

  test('publishes the picture of a camera without sound or RTP over TCP by UDP to the configured port', async () => {
    const { first: rtpPort } = await freeUdpRange(4);
    const { ann, room } = await watched(camera.url('/udp'), { rtpPort });
    const { video } = await published(room, 1);
    await ann.plays(video, 'red');
    const bound = readFileSync('/proc/net/udp', 'latin1').match(/(?<=: [0-9A-F]{8}:)[0-9A-F]{4}/g) ?? [];
    expect(bound.map((port) => Number.parseInt(port, 16))).toEqual(expect.arrayContaining([rtpPort, rtpPort + 1]));
  });

  test('lets peers hear an intercom without a picture', async () => {
    const { ann, room } = await watched(camera.url('/sound'));
    const { audio } = await published(room, 1);
    await ann.sounds(audio, 440);
  });

  test('delivers a picture within half a second through 100 ms of jitter', async () => {
    const jitter = await openJitter(camera.port, 100);
    try {
      const { ann, room } = await watched(`rtsp://127.0.0.1:${jitter.port}/mute`);
      const { video } = await published(room, 1);
      await ann.plays(video, 'red');
      const delays: number[] = [];
      for (let i = 0; i < 9; i += 1) {
        const [colour, value] = i % 2 === 0 ? (['blue', '0xff1e1ec8'] as const) : (['red', '0xffc81e1e'] as const);
        ann.mark();
        const changedAt = await camera.set('picture', 'foreground-color', value);
        const seen = await ann.next('frameColour', (event) => event.trackId === video && event.colour === colour);
        delays.push(seen.at - changedAt);
        await delay(300);
      }
      const median = delays.toSorted((a, b) => a - b)[4]!;
      promise('camera to eye, median of 9 with 100 ms of jitter', median, 500);
    } finally {
      jitter.close();
    }
  });

  test('shows viewers a change of resolution', async () => {
    const { ann, room } = await watched(camera.url('/mute'));
    const { video } = await published(room, 1);
    await ann.plays(video, 'red');
    await camera.resize(640, 480);
    await ann.until('the picture is larger', () => ann.tracks.get(video)?.width === 640);
    await camera.resize(320, 240);
    await ann.until('the picture is smaller', () => ann.tracks.get(video)?.width === 320);
    expect(await tracksOf(room)).toHaveLength(1);
  });

  test('ends tracks when a camera is killed, and starts new ones when it returns', async () => {
    const { ann, room } = await watched(camera.url('/aac'));
    const before = await published(room, 2);
    await ann.plays(before.video, 'red');
    await camera.kill();
    await Promise.all([ann.removed(before.video), ann.removed(before.audio)]);
    expect(await tracksOf(room)).toEqual([]);
    await camera.start();
    const after = await published(room, 2);
    expect(after.video).not.toBe(before.video);
    await Promise.all([ann.plays(after.video, 'red'), ann.sounds(after.audio, 440)]);
  });

  test('ends tracks when a camera freezes, and can still remove the component', async () => {
    const { ann, room, component } = await watched(camera.url('/aac'));
    const { video } = await published(room, 2);
    await ann.plays(video, 'red');
    camera.freeze();
    await ann.until('the track is removed', () => ann.tracks.get(video)?.removed === true, 15_000);
    await camera.kill();
    const { status } = await stage.api.request('DELETE', `/room/${room}/component/${component}`);
    expect(status).toBe(204);
    await camera.start();
  });

  test('accepts a digest login; a wrong one or a missing stream yields no tracks and reveals no password', async () => {
    const uri = (user: string): string => locked.url('/mute').replace('//', `//${user}@`);
    const { room } = await watched(uri(`admin:${encodeURIComponent(password)}`));
    await published(room, 1);
    const wrong = await watched(uri('admin:hunter2'));
    const nowhere = await watched(`${camera.url('/mute')}ton`);
    const lost = (reason: string): boolean =>
      stage.node
        .log()
        .split('\n')
        .some((line) => line.includes('rtsp.lost') && line.includes(reason));
    await until('both are lost', () => lost('401') && lost('404'));
    expect(await tracksOf(wrong.room)).toEqual([]);
    expect(await tracksOf(nowhere.room)).toEqual([]);

    const { components } = await stage.api.room(wrong.room);
    expect(components[0].properties.sourceUri).toBe(`rtsp://***@127.0.0.1:${locked.port}/mute`);
    expect(stage.node.log()).not.toMatch(/hunter2|w%2Frd|p@ss/);
  });

  test('crashes the component on H.265, and names the codec in the log', async () => {
    const { room } = await watched(camera.url('/h265'));
    await until('the component is gone', async () => (await stage.api.room(room)).components.length === 0);
    await until('the log says why', () => /component\.crashed.*H\.265/.test(stage.node.log()));
  });
});
