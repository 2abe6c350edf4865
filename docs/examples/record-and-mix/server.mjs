// Records a call as one movie of everybody, which can be watched and downloaded once the call has ended.
import { createWriteStream, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { BloomClient } from '@bloom/server-sdk';
import express from 'express';
import { ALL_FORMATS, Conversion, FilePathSource, FilePathTarget, Input, Mp4OutputFormat, Output } from 'mediabunny';

const { BLOOM_URL = 'http://127.0.0.1:5002', BLOOM_TOKEN = 'development', PORT = '3000' } = process.env;
const bloom = new BloomClient({ url: BLOOM_URL, token: BLOOM_TOKEN });
// The node composes pictures only in H.264. A persistent stream becomes a recording when its room ends.
const { room } = await bloom.createRoom({ videoCodec: 'h264' });
await bloom.addComponent(room.id, 'hls', { persistent: true });

const folder = mkdtempSync(join(tmpdir(), 'bloom-movie-'));
const fragments = join(folder, 'fragments.mp4');
const movie = join(folder, 'movie.mp4');

async function download(name) {
  const url = `${BLOOM_URL}/recording/${room.id}/${name}`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${BLOOM_TOKEN}` } });
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  return answer;
}

/** The files of a recording are fragments of one MP4 file: in order, they are a movie that plays from start to end. */
async function* downloadFragments() {
  const [playlist] = /^[^#\s].*$/m.exec(await (await download('index.m3u8')).text());
  const segments = await (await download(playlist)).text();
  const [, header] = /#EXT-X-MAP:URI="([^"]+)"/.exec(segments);
  for (const name of [header, ...segments.match(/^[^#\s].*$/gm)]) yield* (await download(name)).body;
}

/** Writes the movie again with an index at its start, so that players can seek. Nothing is encoded again. */
async function writeIndexed() {
  const input = new Input({ source: new FilePathSource(fragments), formats: ALL_FORMATS });
  const format = new Mp4OutputFormat({ fastStart: 'in-memory' });
  const output = new Output({ format, target: new FilePathTarget(movie) });
  const conversion = await Conversion.init({ input, output });
  await conversion.execute();
}

async function endCall() {
  await bloom.deleteRoom(room.id);
  while (!(await bloom.listRecordings('cluster')).includes(room.id)) await delay(200);
  await pipeline(Readable.from(downloadFragments()), createWriteStream(fragments));
  await writeIndexed();
}

const app = express();
app.get('/', (_request, response) => response.sendFile(fileURLToPath(new URL('index.html', import.meta.url))));
app.get('/client.js', (_request, response) => response.sendFile(fileURLToPath(import.meta.resolve('@bloom/client'))));
// Answers requests for ranges, which players send to seek.
app.get('/movie.mp4', (_request, response) => response.sendFile(movie));

app.post('/seat', async (_request, response) => {
  const { token, websocketUrl } = await bloom.addPeer(room.id);
  response.json({ token, url: websocketUrl });
});
app.post('/end', async (_request, response) => {
  await endCall();
  response.json({ movie: '/movie.mp4' });
});

const server = app.listen(Number(PORT), '127.0.0.1', () =>
  console.log(`Open http://127.0.0.1:${server.address().port}/, join, and end the call after a few seconds`),
);
