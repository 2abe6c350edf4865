// People sign in, get a token for the room, and the first one moderates. The browser never sees the API token.
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { BloomApiError, BloomClient } from '@bloom/server-sdk';
import express, { type NextFunction, type Request, type Response } from 'express';

const { BLOOM_URL = 'http://127.0.0.1:5002', BLOOM_TOKEN = 'development', PORT = '3000' } = process.env;
const bloom = new BloomClient({ url: BLOOM_URL, token: BLOOM_TOKEN });
const { room } = await bloom.createRoom({ maxPeers: 20 });

interface User {
  readonly name: string;
  readonly moderator: boolean;
}

/** By the value of the cookie. */
const sessions = new Map<string, User>();

const app = express();
app.use(express.json());
app.get('/', (_request, response) => response.sendFile(fileURLToPath(new URL('../index.html', import.meta.url))));
app.get('/client.js', (_request, response) => response.sendFile(fileURLToPath(import.meta.resolve('@bloom/client'))));

// A real backend would check a password here.
app.post('/sign-in', (request, response) => {
  const id = randomUUID();
  const user: User = { name: String(request.body?.name ?? '').slice(0, 50), moderator: sessions.size === 0 };
  sessions.set(id, user);
  response.cookie('session', id, { httpOnly: true, sameSite: 'strict' }).json(user);
});

app.use((request, response, next) => {
  const [, id] = /session=([\w-]+)/.exec(request.headers.cookie ?? '') ?? [];
  response.locals['user'] = sessions.get(id ?? '');
  if (response.locals['user'] === undefined) response.status(401).json({ error: 'sign in first' });
  else next();
});

// The others see this name, whatever the browser claims. Everybody may speak; only the moderator shows a picture at
// first.
app.post('/seat', async (_request, response) => {
  const { name, moderator } = response.locals['user'] as User;
  const { token, websocketUrl } = await bloom.addPeer(room.id, {
    metadata: { name, moderator },
    permissions: { publish: moderator ? true : ['audio'] },
    ttl: 3600,
  });
  response.json({ token, url: websocketUrl });
});

app.use('/peers', (_request, response, next) => {
  if (response.locals['user'].moderator) next();
  else response.status(403).json({ error: 'only the moderator may do this' });
});
app.post('/peers/:id/allow-video', async ({ params }, response) => {
  response.json(await bloom.updatePeer(room.id, params.id, { permissions: { publish: true } }));
});
app.delete('/peers/:id', async ({ params }, response) => {
  await bloom.deletePeer(room.id, params.id, 'The moderator has removed you');
  response.json({});
});

app.use((error: Error, _request: Request, response: Response, _next: NextFunction) => {
  const status = error instanceof BloomApiError ? error.status : 500;
  response.status(status).json({ error: error.message });
});

const server = app.listen(Number(PORT), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  console.log(`Open http://127.0.0.1:${port}/ in two browsers: the first one moderates`);
});
