// One page speaks, and any number of pages watch: by WHEP within a fraction of a second, or by HLS with their own
// token.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { BloomClient } from '@bloom/server-sdk';

const { BLOOM_URL = 'http://127.0.0.1:5002', BLOOM_TOKEN = 'development', PORT = '3000' } = process.env;
const bloom = new BloomClient({ url: BLOOM_URL, token: BLOOM_TOKEN });
const { room } = await bloom.createRoom({ videoCodec: 'h264' });
await bloom.addComponent(room.id, 'hls', { lowLatency: true });

async function seat() {
  const { token, websocketUrl } = await bloom.addPeer(room.id);
  return { token, url: websocketUrl };
}

async function viewer() {
  const { token, whepUrl } = await bloom.addPeer(room.id, { permissions: { publish: false } });
  return { token, url: whepUrl };
}

/** Address of the stream, with a token in its path that opens nothing else. Players fetch the files from Bloom. */
async function stream() {
  const { hlsUrl } = await bloom.createViewer(room.id, { ttl: 3600 });
  return { url: hlsUrl };
}

const page = readFileSync(new URL('index.html', import.meta.url));
const scripts = {
  '/client.js': readFileSync(new URL(import.meta.resolve('@bloom/client'))),
  '/hls.js': readFileSync(new URL(import.meta.resolve('hls.js'))),
};

const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost');
  try {
    if (pathname in scripts) response.setHeader('content-type', 'text/javascript').end(scripts[pathname]);
    else if (pathname === '/seat') response.end(JSON.stringify(await seat()));
    else if (pathname === '/viewer') response.end(JSON.stringify(await viewer()));
    else if (pathname === '/stream') response.end(JSON.stringify(await stream()));
    else response.setHeader('content-type', 'text/html').end(page);
  } catch (error) {
    response.writeHead(500).end(error.message);
  }
});
server.listen(Number(PORT), '127.0.0.1', () =>
  console.log(`Open http://127.0.0.1:${server.address().port}/ in two tabs: speak in one, watch in the other`),
);
