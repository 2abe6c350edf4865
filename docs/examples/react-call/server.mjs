// Serves the page, and a seat in one room to everybody who opens it. A real backend would ask who they are.
import { createServer } from 'node:http';
import { BloomApiError, BloomClient } from '@bloom/server-sdk';
import { build } from 'esbuild';

const { BLOOM_URL = 'http://127.0.0.1:5002', BLOOM_TOKEN = 'development', PORT = '3000' } = process.env;
const bloom = new BloomClient({ url: BLOOM_URL, token: BLOOM_TOKEN });
const ROOM = 'react-call';

const { outputFiles } = await build({
  entryPoints: [new URL('src/call.tsx', import.meta.url).pathname],
  bundle: true,
  format: 'esm',
  jsx: 'automatic',
  outdir: '/',
  write: false,
});
const files = new Map(outputFiles.map(({ path, text }) => [path, text]));
const page = `<!doctype html>
<html lang="en" style="color-scheme: light dark">
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Call</title>
  <link rel="stylesheet" href="/call.css">
  <body style="margin: 0">
    <div id="call"></div>
    <script type="module" src="/call.js"></script>
  </body>
</html>`;

async function createRoom() {
  try {
    await bloom.createRoom({ roomId: ROOM });
  } catch (error) {
    // An earlier visitor has created the room.
    if (!(error instanceof BloomApiError)) throw error;
  }
}

/** Two simultaneous visitors share one request: the second would be refused before the room exists. */
let creating;

async function seat() {
  creating ??= createRoom().finally(() => (creating = undefined));
  await creating;
  const { token, websocketUrl } = await bloom.addPeer(ROOM);
  return { token, url: websocketUrl };
}

const server = createServer(async (request, response) => {
  try {
    const file = files.get(request.url);
    const type = request.url.endsWith('.css') ? 'text/css' : 'text/javascript';
    if (file !== undefined) return response.setHeader('content-type', type).end(file);
    if (request.url !== '/seat') return response.setHeader('content-type', 'text/html').end(page);
    return response.setHeader('content-type', 'application/json').end(JSON.stringify(await seat()));
  } catch (error) {
    return response.writeHead(500).end(String(error));
  }
});
server.listen(Number(PORT), '127.0.0.1', () =>
  console.log(`Open http://127.0.0.1:${server.address().port}/ in two tabs`),
);
