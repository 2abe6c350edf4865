// Serves the page unchanged, and a seat in one room to everybody who opens it. A real backend would ask who they are.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { BloomClient } from '@bloom/server-sdk';

const { BLOOM_URL = 'http://127.0.0.1:5002', BLOOM_TOKEN = 'development', PORT = '3000' } = process.env;
const bloom = new BloomClient({ url: BLOOM_URL, token: BLOOM_TOKEN });
const { room } = await bloom.createRoom();

const page = readFileSync(new URL('index.html', import.meta.url));
const script = readFileSync(new URL(import.meta.resolve('@bloom/client')));
// Loaded by the client when its room moves to another node.
const moving = readFileSync(new URL('moving.js', import.meta.resolve('@bloom/client')));

async function seat() {
  const { token, websocketUrl } = await bloom.addPeer(room.id);
  return JSON.stringify({ token, url: websocketUrl });
}

const server = createServer(async (request, response) => {
  try {
    if (request.url === '/seat') response.setHeader('content-type', 'application/json').end(await seat());
    else if (request.url === '/client.js') response.setHeader('content-type', 'text/javascript').end(script);
    else if (request.url === '/moving.js') response.setHeader('content-type', 'text/javascript').end(moving);
    else response.setHeader('content-type', 'text/html').end(page);
  } catch (error) {
    response.writeHead(500).end(error.message);
  }
});
server.listen(Number(PORT), '127.0.0.1', () =>
  console.log(`Open http://127.0.0.1:${server.address().port}/ in two tabs`),
);
