// Serves the page, and a seat in one room to everybody who opens it: here a real backend would ask who it is.
import { createServer } from 'node:http';
import { BloomApiError, BloomClient } from '@bloom/server-sdk';
import { build } from 'esbuild';

const { BLOOM_URL = 'http://127.0.0.1:5002', BLOOM_TOKEN = 'development', PORT = '3000' } = process.env;
const bloom = new BloomClient({ url: BLOOM_URL, token: BLOOM_TOKEN });
const ROOM = 'react-call';

const bundle = await build({
  entryPoints: [new URL('src/call.jsx', import.meta.url).pathname],
  bundle: true,
  format: 'esm',
  jsx: 'automatic',
  write: false,
});
const script = bundle.outputFiles[0].text;
const page =
  '<!doctype html><meta charset="utf-8"><title>Call</title><main id="call"></main><script type="module" src="/call.js"></script>';

async function createRoom() {
  try {
    await bloom.createRoom({ roomId: ROOM });
  } catch (error) {
    // Somebody was here before: the room exists.
    if (!(error instanceof BloomApiError)) throw error;
  }
}

/** Two visitors at once share one request: the second would be refused before the room is there. */
let creating;

async function seat() {
  creating ??= createRoom().finally(() => (creating = undefined));
  await creating;
  const { token, websocketUrl } = await bloom.addPeer(ROOM);
  return { token, url: websocketUrl };
}

const server = createServer(async (request, response) => {
  try {
    if (request.url === '/call.js') return response.setHeader('content-type', 'text/javascript').end(script);
    if (request.url !== '/seat') return response.setHeader('content-type', 'text/html').end(page);
    return response.setHeader('content-type', 'application/json').end(JSON.stringify(await seat()));
  } catch (error) {
    return response.writeHead(500).end(String(error));
  }
});
server.listen(Number(PORT), '127.0.0.1', () =>
  console.log(`Open http://127.0.0.1:${server.address().port}/ in two tabs`),
);
