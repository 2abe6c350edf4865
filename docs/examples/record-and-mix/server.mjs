// Records a call as one movie of everybody, which can be downloaded once the call has ended.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { BloomClient } from '@bloom/server-sdk';

const { BLOOM_URL = 'http://127.0.0.1:5002', BLOOM_TOKEN = 'development', PORT = '3000' } = process.env;
const bloom = new BloomClient({ url: BLOOM_URL, token: BLOOM_TOKEN });
// The node composes pictures only in H.264. A persistent stream becomes a recording when its room ends.
const { room } = await bloom.createRoom({ videoCodec: 'h264' });
await bloom.addComponent(room.id, 'hls', { persistent: true });

async function seat() {
  const { token, websocketUrl } = await bloom.addPeer(room.id);
  return { token, url: websocketUrl };
}

async function endCall() {
  await bloom.deleteRoom(room.id);
  while (!(await bloom.listRecordings('cluster')).includes(room.id)) await delay(200);
  return { movie: '/movie.mp4' };
}

async function file(name) {
  const url = `${BLOOM_URL}/recording/${room.id}/${name}`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${BLOOM_TOKEN}` } });
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  return Buffer.from(await answer.arrayBuffer());
}

/** The files of a recording are fragments of one MP4 file: joined in order, they are the movie. */
async function sendMovie(response) {
  const [playlist] = /^[^#\s].*$/m.exec(String(await file('index.m3u8')));
  const segments = String(await file(playlist));
  const [, header] = /#EXT-X-MAP:URI="([^"]+)"/.exec(segments);
  response.setHeader('content-type', 'video/mp4');
  for (const name of [header, ...segments.match(/^[^#\s].*$/gm)]) response.write(await file(name));
  response.end();
}

const page = readFileSync(new URL('index.html', import.meta.url));
const script = readFileSync(new URL(import.meta.resolve('@bloom/client')));
const json = (value) => JSON.stringify(value);

const server = createServer(async (request, response) => {
  try {
    if (request.url === '/seat') response.end(json(await seat()));
    else if (request.url === '/end') response.end(json(await endCall()));
    else if (request.url === '/movie.mp4') await sendMovie(response);
    else if (request.url === '/client.js') response.setHeader('content-type', 'text/javascript').end(script);
    else response.setHeader('content-type', 'text/html').end(page);
  } catch (error) {
    response.writeHead(500).end(error.message);
  }
});
server.listen(Number(PORT), '127.0.0.1', () =>
  console.log(`Open http://127.0.0.1:${server.address().port}/, join, and end the call after a few seconds`),
);
