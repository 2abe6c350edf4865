/**
 * `npm run bench:codecs -- [--codecs vp8,h264,vp9,av1] [--psnr 34] [--loss 0.05] [--seconds 5]`: the bitrate at which
 * Chromium's encoder of each codec reaches a picture quality (PSNR of the luma in dB), for the same moving picture of
 * 640x360 at 15 pictures per second, and how often that picture stands still while packets are lost on the way to the
 * viewer. The server's CPU per packet is measured by `npm run bench:sfu -- --codecs vp8,h264,vp9,av1`.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { type Browser, chromium, type Page } from 'playwright-core';
import { startBenchNode, token } from '../http/node.js';
import { openUdpRelay } from '../network/udp-relay.js';
import { printTable } from '../report.js';
import { freePort } from '../sfu/process.js';
import { pageScript } from './page.js';

const { values } = parseArgs({
  options: {
    codecs: { type: 'string', default: 'vp8,h264,vp9,av1' },
    psnr: { type: 'string', default: '34' },
    loss: { type: 'string', default: '0.05' },
    seconds: { type: 'string', default: '5' },
  },
});
const wanted = Number(values.psnr);
const seconds = Number(values.seconds);
/** Bits per second that the encoders may use, between which the result is interpolated. */
const LIMITS = [100_000, 200_000, 400_000, 800_000];
const ROUND_TRIP_MS = 50;
/** Time for the encoder and the estimates of both ends to settle, ms. */
const SETTLE_MS = 8_000;
const PAUSE_MS = 500;

const NODE = '127.0.0.1';
const RELAY = '127.0.0.2';
const port = await freePort(RELAY);
const delayMs = ROUND_TRIP_MS / 2;
const GOOD = { up: { delayMs }, down: { delayMs } };
const LOSSY = { up: { delayMs }, down: { delayMs, loss: Number(values.loss) } };
const relay = await openUdpRelay({
  listen: { address: RELAY, port },
  server: { address: NODE, port },
  ...GOOD,
});
const node = await startBenchNode(undefined, {
  JF_WEBRTC_TURN_LISTEN_IP: NODE,
  JF_WEBRTC_TURN_IP: RELAY,
  JF_WEBRTC_TURN_PORT_RANGE: `${port}-${port}`,
  JF_CHECK_ORIGIN: 'false',
});
const script = await pageScript();
const pages = createServer((request, response) => {
  if (request.url === '/page.js') response.setHeader('content-type', 'text/javascript').end(script);
  else response.setHeader('content-type', 'text/html').end('<!doctype html><body><script src="/page.js"></script>');
}).listen(0, NODE);
await once(pages, 'listening');

async function post(path: string, body: unknown): Promise<{ data: { token: string } }> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const answer = await fetch(`http://${NODE}:${node.port}${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  return (await answer.json()) as { data: { token: string } };
}

let rooms = 0;
/** Lets one page publish and another watch. Returns the latter. */
async function call(browser: Browser, codec: string, limitBps: number): Promise<Page> {
  rooms += 1;
  await post('/room', { roomId: `codec-${rooms}` });
  const [publisher, viewer] = await Promise.all([newPage(browser), newPage(browser)]);
  const seat = async (): Promise<string> => {
    const { data } = await post(`/room/codec-${rooms}/peer`, { type: 'webrtc', options: {} });
    return JSON.stringify({ url: `${NODE}:${node.port}`, token: data.token });
  };
  await publisher.evaluate(`window.publish(${await seat()}, '${codec}', ${limitBps})`);
  await viewer.evaluate(`window.watch(${await seat()})`);
  await viewer.waitForTimeout(SETTLE_MS);
  return viewer;
}

async function newPage(browser: Browser): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  await page.goto(`http://${NODE}:${(pages.address() as AddressInfo).port}/`);
  return page;
}

interface Quality {
  psnr: number;
  bps: number;
  codec: string;
  /** Pixels; less than the picture has if the encoder made it smaller. */
  width: number;
}

interface Pauses {
  count: number;
  totalMs: number;
}

/** Returns the kbit/s that reach the wanted quality, by a line through the nearest measurements. */
function bitrateAt(points: readonly Quality[]): number | string {
  const sorted = points.toSorted((a, b) => a.psnr - b.psnr);
  const above = sorted.findIndex(({ psnr }) => psnr >= wanted);
  const [low, high] = [sorted[above - 1], sorted[above]];
  if (high === undefined) return `more than ${Math.round(Math.max(...points.map(({ bps }) => bps)) / 1_000)}`;
  if (low === undefined) return `less than ${Math.round(high.bps / 1_000)}`;
  const part = (wanted - low.psnr) / (high.psnr - low.psnr);
  return Math.round(Math.exp(Math.log(low.bps) + part * (Math.log(high.bps) - Math.log(low.bps))) / 1_000);
}

const browser = await chromium.launch({
  executablePath: process.env['BLOOM_CHROMIUM'] ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-background-networking',
    '--disable-background-timer-throttling',
    '--disable-renderer-backgrounding',
    '--disable-backgrounding-occluded-windows',
  ],
});
const rows: object[] = [];
const details: object[] = [];
try {
  for (const codec of values.codecs.split(',')) {
    const points: Quality[] = [];
    const pauses: Record<string, number> = {};
    for (const limitBps of LIMITS) {
      const viewer = await call(browser, codec, limitBps);
      const quality = await viewer.evaluate<Quality>(`window.compare(${seconds})`);
      points.push(quality);
      details.push({
        codec,
        'limit kbit/s': limitBps / 1_000,
        sent: quality.codec,
        width: quality.width,
        'kbit/s': Math.round(quality.bps / 1_000),
        'PSNR dB': Number(quality.psnr.toFixed(1)),
      });
      if (limitBps === LIMITS.at(-1)) {
        const lossySeconds = seconds * 4;
        relay.set(LOSSY);
        const { count, totalMs } = await viewer.evaluate<Pauses>(`window.pauses(${lossySeconds}, ${PAUSE_MS})`);
        relay.set(GOOD);
        pauses[`pauses over ${PAUSE_MS} ms in ${lossySeconds} s`] = count;
        pauses['stood still ms'] = Math.round(totalMs);
      }
      for (const context of browser.contexts()) await context.close();
    }
    rows.push({ codec, [`kbit/s at ${wanted} dB`]: bitrateAt(points), ...pauses });
  }
} finally {
  await browser.close();
  pages.close();
  await node.stop();
  await relay.close();
}
printTable('Quality by bitrate', details);
printTable(`The same picture in each codec; ${Number(values.loss) * 100} % loss for the pauses`, rows);
