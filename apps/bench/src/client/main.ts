/**
 * `npm run bench:client -- [--rounds 15]`: time from connecting to the first picture, for @bloom/client and the
 * published SDK in turn, in one Chromium, with one node and one publisher. Exits with 1 if the target is missed.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { chromium, type Page } from 'playwright-core';
import { startBenchNode, token } from '../http/node.js';
import { printTable, printVerdict } from '../report.js';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '15' } } });
const rounds = Number(values.rounds);
const TARGET = { must: 0.75, aim: 0.6 };

/** Chromium gathers no host candidates on the loopback interface, so every path would lead through the relay. */
const address = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
if (address === undefined) throw new Error('this machine has the loopback interface only: no direct path to measure');

const PAGE = `
  import { RoomClient } from '@bloom/client';
  import { JellyfishClient } from '@jellyfish-dev/ts-client-sdk';

  const firstFrame = (track) => new Promise((resolve) => {
    const video = document.createElement('video');
    Object.assign(video, { muted: true, autoplay: true, srcObject: new MediaStream([track]) });
    document.body.append(video);
    video.requestVideoFrameCallback(() => resolve(performance.now()));
  });

  window.bloom = async (host, token) => {
    const begun = performance.now();
    const client = new RoomClient();
    const media = new Promise((resolve) => client.on('trackReady', ({ media }) => resolve(media)));
    await client.connect({ url: host, token });
    return (await firstFrame(await media)) - begun;
  };

  window.published = async (host, token) => {
    const begun = performance.now();
    const client = new JellyfishClient();
    const media = new Promise((resolve) => client.on('trackReady', ({ track }) => resolve(track)));
    client.connect({ token, peerMetadata: {}, signaling: { protocol: 'ws', host, path: '/socket/peer/websocket' } });
    return (await firstFrame(await media)) - begun;
  };

  window.publish = async (host, token) => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 640, height: 360 });
    const context = canvas.getContext('2d');
    setInterval(() => {
      context.fillStyle = 'hsl(' + (performance.now() / 10) + ' 80% 50%)';
      context.fillRect(0, 0, 640, 360);
    }, 33);
    const client = new RoomClient();
    await client.connect({ url: host, token });
    await client.publish(canvas.captureStream(30).getVideoTracks()[0], { simulcast: false });
  };
`;

const { outputFiles } = await build({
  stdin: { contents: PAGE, resolveDir: process.cwd() },
  bundle: true,
  format: 'iife',
  write: false,
});
const script = outputFiles[0]?.text ?? '';
const pages = createServer((request, response) => {
  if (request.url === '/page.js') response.setHeader('content-type', 'text/javascript').end(script);
  else response.setHeader('content-type', 'text/html').end('<!doctype html><body><script src="/page.js"></script>');
}).listen(0, '127.0.0.1');
await once(pages, 'listening');

const node = await startBenchNode(undefined, {
  JF_WEBRTC_TURN_IP: address,
  JF_WEBRTC_TURN_LISTEN_IP: address,
  JF_CHECK_ORIGIN: 'false',
});
const host = `127.0.0.1:${node.port}`;
const executablePath = process.env['BLOOM_CHROMIUM'] ?? '/usr/bin/chromium';
const browser = await chromium.launch({
  executablePath,
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-background-networking',
    '--disable-background-timer-throttling',
    '--disable-renderer-backgrounding',
  ],
});

async function post(path: string, body: unknown): Promise<{ data: { token: string } }> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const answer = await fetch(`http://${host}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return (await answer.json()) as { data: { token: string } };
}

async function newPage(): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`);
  return page;
}

async function measure(how: 'bloom' | 'published' | 'publish'): Promise<number> {
  const { data } = await post('/room/first/peer', { type: 'webrtc', options: {} });
  const page = await newPage();
  const ms = await page.evaluate<number>(`window.${how}('${host}', '${data.token}')`);
  if (how !== 'publish') await page.context().close();
  return ms;
}

const median = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1] ?? NaN;

try {
  await post('/room', { roomId: 'first' });
  await measure('publish');
  const times = { bloom: [] as number[], published: [] as number[] };
  for (const how of ['bloom', 'published'] as const) await measure(how);
  for (let round = 0; round < rounds; round += 1) {
    for (const how of ['bloom', 'published'] as const) times[how].push(await measure(how));
  }
  printTable(`From connecting to the first picture, median of ${rounds}`, [
    { client: 'published SDK', ms: Math.round(median(times.published)) },
    { client: '@bloom/client', ms: Math.round(median(times.bloom)) },
  ]);
  printVerdict('of the time with the published SDK', median(times.bloom) / median(times.published), TARGET, 'x');
} finally {
  await browser.close();
  await node.stop();
  pages.close();
}
