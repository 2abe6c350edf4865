// People who watch a stream with their own token: with ffprobe and mpv, which accept an address, and with hls.js.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { testWith } from '../harness/needs.js';
import { colours } from '../page/driver-api.js';
import { addStream, hlsSuite, playable } from './support.js';
import { Watcher } from './watcher.js';

const run = promisify(execFile);
const PLAYER_MS = 30_000;

hlsSuite('Viewers with a token', {}, (stage) => {
  let room: string;
  let watcher: Watcher | undefined;

  beforeEach(async () => {
    const call = await stage.call(['ann'], { videoCodec: 'h264' });
    ({ room } = call);
    await addStream(stage, room, { lowLatency: true });
    await call.ann.addVideo({ colour: 'cyan', width: 320, height: 180, fps: 15 });
    await playable(stage, room);
  }, 60_000);

  afterEach(async () => {
    await watcher?.close();
    watcher = undefined;
  });

  async function viewer(body: unknown = {}): Promise<{ token: string; url: string }> {
    const { token, hls_url } = (await stage.api.request('POST', `/room/${room}/viewer`, body)).body.data;
    const { pathname } = new URL(hls_url);

    return { token, url: `${stage.node.url}${pathname}` };
  }

  testWith(
    { needs: ['ffmpeg'], timeoutMs: 60_000 },
    'ffprobe finds picture and sound at the address of a viewer',
    async () => {
      const { url } = await viewer();
      const options = ['-v', 'error', '-show_entries', 'stream=codec_name', '-of', 'csv=p=0'];
      const { stdout } = await run('ffprobe', [...options, url], { timeout: PLAYER_MS });
      expect(stdout.split(/\s+/).filter(Boolean)).toEqual(expect.arrayContaining(['h264', 'aac']));
    },
  );

  testWith(
    { needs: ['mpv'], timeoutMs: 90_000 },
    'mpv plays the address of a viewer, and is refused with a changed token',
    async () => {
      const { url, token } = await viewer();
      const play = (address: string) =>
        run('mpv', ['--no-config', '--vo=null', '--ao=null', '--length=2', address], { timeout: PLAYER_MS });
      await play(url);
      const wrong = url.replace(token, `${token.slice(0, -4)}AAAA`);
      await expect(play(wrong)).rejects.toMatchObject({ code: 2 });
    },
  );

  test('plays in hls.js with the token of a viewer in its header, and with that of a peer', async () => {
    const { token } = await viewer();
    watcher = await Watcher.open(stage.browser);
    await watcher.watch(`${stage.node.url}/hls/${room}/index.m3u8`, token);
    await watcher.sees(colours.cyan, [0.5, 0.4]);
    expect((await watcher.report()).errors).toEqual([]);
    await watcher.close();
    watcher = await Watcher.open(stage.browser);
    await watcher.watch(`${stage.node.url}/hls/${room}/index.m3u8`, (await stage.api.addPeer(room)).token);
    await watcher.sees(colours.cyan, [0.5, 0.4]);
  }, 90_000);

  test('opens nothing with a token that has expired or belongs to a former room, while the stream continues', async () => {
    const [short, lasting] = [await viewer({ ttl: 1 }), await viewer()];
    const status = async (url: string): Promise<number> => (await fetch(url)).status;
    const deadline = Date.now() + 5_000;
    while ((await status(short.url)) !== 401 && Date.now() < deadline)
      await new Promise((done) => setTimeout(done, 100));
    expect(await status(short.url)).toBe(401);
    expect(await status(lasting.url)).toBe(200);
    await stage.api.deleteRoom(room);
    expect(await status(lasting.url)).toBe(404);
    await stage.api.request('POST', '/room', { roomId: room });
    expect(await status(lasting.url)).toBe(401);
  }, 30_000);
});
