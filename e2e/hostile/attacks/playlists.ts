import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from '@jest/globals';
import type { Attack, Ground } from '../harness/attack.js';
import { many, rawConnection } from '../harness/raw-socket.js';

const HOLDERS = 1_500;
const PLAYABLE_MS = 30_000;
/** A player's blocking reload resolves with the next part; a part lasts a third of a second. */
const MAX_RELOAD_MS = 4_000;

/** Creates a low-latency stream of a separate room, played from a file. */
async function stream(ground: Ground): Promise<string> {
  const { body } = await ground.api('POST', '/room', { videoCodec: 'h264' });
  const room = (body as { data: { room: { id: string } } }).data.room.id;
  ground.after(() => ground.api('DELETE', `/room/${room}`).then(() => undefined));
  await ground.api('POST', `/room/${room}/component`, { type: 'hls', options: { lowLatency: true } });
  await ground.api('POST', `/room/${room}/component`, {
    type: 'file',
    options: { filePath: 'red.h264', framerate: 15 },
  });
  const until = performance.now() + PLAYABLE_MS;
  while ((await fetch(`${ground.url}/hls/${room}/main.m3u8`)).status !== 200) {
    if (performance.now() > until) throw new Error('the stream did not become playable');
    await pause(200);
  }
  return `/hls/${room}/main.m3u8`;
}

async function nextSegment(ground: Ground, path: string): Promise<number> {
  const text = await (await fetch(`${ground.url}${path}`)).text();
  const first = Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1] ?? 0);
  return first + (text.match(/#EXTINF/g)?.length ?? 0);
}

/** A recording and one of its large files, created by `playlists.test.ts`. */
export const RECORDING = { id: 'hostile', fileName: 'large.m4s', size: 20_000_000 } as const;

/** These attacks need a node that serves media files without a token, `red.h264` to play, and the recording. */
export const playlists: readonly Attack[] = [
  {
    title: `${HOLDERS} strangers who wait for the next part of a public stream, and ask again`,
    async run(ground) {
      const path = await stream(ground);
      const opened = await many(HOLDERS, (at) =>
        rawConnection({ host: ground.host, from: `127.0.2.${1 + (at % 50)}` }),
      );
      ground.after(() => opened.forEach((socket) => socket.destroy()));
      for (let round = 0; round < 3; round += 1) {
        const next = await nextSegment(ground, path);
        for (const socket of opened) {
          socket.resume();
          socket.write(`GET ${path}?_HLS_msn=${next + 1}&_HLS_part=0 HTTP/1.1\r\nHost: x\r\n\r\n`);
        }
        await pause(700);
      }
      const from = performance.now();
      const answer = await fetch(`${ground.url}${path}?_HLS_msn=${await nextSegment(ground, path)}`);
      expect(answer.status).toBe(200);
      expect(performance.now() - from).toBeLessThan(MAX_RELOAD_MS);
    },
  },
  {
    title: 'reloads of parts that will never exist, with numbers of every size',
    async run(ground) {
      const path = await stream(ground);
      const numbers = ['-1', '0', '999999', '9'.repeat(30), '1e9', 'NaN', '', '%00', '4294967296', '2.5'];
      const opened = await many(200, async () => {
        const socket = await rawConnection({ host: ground.host });
        const query = `_HLS_msn=${ground.random.pick(numbers)}&_HLS_part=${ground.random.pick(numbers)}&_HLS_skip=YES`;
        socket.resume();
        socket.write(`GET ${path}?${query} HTTP/1.1\r\nHost: x\r\n\r\n`);
        return socket;
      });
      ground.after(() => opened.forEach((socket) => socket.destroy()));
      await pause(1_000);
    },
  },
  {
    title: 'strangers who request a recording twenty times over one connection and leave',
    async run(ground) {
      const request = `GET /recording/${RECORDING.id}/${RECORDING.fileName} HTTP/1.1\r\nHost: x\r\n\r\n`;
      for (let round = 0; round < 5; round += 1) {
        const opened = await many(20, () => rawConnection({ host: ground.host }));
        const begun = await Promise.all(
          opened.map(async (socket) => {
            socket.write(request.repeat(20));
            return String((await once(socket, 'data'))[0]).split('\r\n', 1)[0];
          }),
        );
        for (const socket of opened) socket.destroy();
        expect(new Set(begun)).toEqual(new Set(['HTTP/1.1 200 OK']));
      }
    },
  },
];
