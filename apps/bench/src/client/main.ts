/**
 * `npm run bench:client -- [--rounds 20]`: time from `join` to the first picture, for @bloom/client and the published
 * SDK in turn, in one Chromium, with one publisher: without delay, and over a round trip of 50 ms. Exits with 1 if a
 * target is missed.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { parseArgs } from 'node:util';
import { type Browser, chromium, type Page } from 'playwright-core';
import { startBenchNode, token } from '../http/node.js';
import { openTcpDelay } from '../network/tcp-delay.js';
import { openUdpRelay } from '../network/udp-relay.js';
import { printTable, printVerdict } from '../report.js';
import { freePort } from '../sfu/process.js';
import { pageScript } from './page.js';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '20' } } });
const rounds = Number(values.rounds);
/** Share of the published SDK's time. */
const RATIO = { must: 0.75, aim: 0.6, unit: 'x' };
/** Round trips in ms, and the targets of the median in ms. */
const NETWORKS = [
  { roundTripMs: 0, target: { must: 400, aim: 300, unit: ' ms' } },
  { roundTripMs: 50, target: { must: 700, aim: 600, unit: ' ms' } },
] as const;
const CLIENTS = { bloom: '@bloom/client', published: 'published SDK' } as const;
type Client = keyof typeof CLIENTS;

/** Chromium gathers no host candidates on the loopback interface, so every path would lead through the relay. */
const address = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
if (address === undefined) throw new Error('this machine has the loopback interface only: no direct path to measure');

interface Network {
  /** Where the node's websocket is. */
  readonly host: string;
  /** Port of the node's API, without delay. */
  readonly apiPort: number;
  close(): Promise<void>;
}

/** Starts a node that browsers reach over a network with this round trip. */
async function openNetwork(announced: string, roundTripMs: number): Promise<Network> {
  const mediaPort = await freePort(announced);
  const behind = roundTripMs === 0 ? announced : '127.0.0.1';
  const node = await startBenchNode(undefined, {
    JF_WEBRTC_TURN_IP: announced,
    JF_WEBRTC_TURN_LISTEN_IP: behind,
    JF_WEBRTC_TURN_PORT_RANGE: `${mediaPort}-${mediaPort}`,
    JF_CHECK_ORIGIN: 'false',
  });
  if (roundTripMs === 0) return { host: `127.0.0.1:${node.port}`, apiPort: node.port, close: () => node.stop() };

  const delayMs = roundTripMs / 2;
  const relay = await openUdpRelay({
    listen: { address: announced, port: mediaPort },
    server: { address: behind, port: mediaPort },
    up: { delayMs },
    down: { delayMs },
  });
  const tcp = await openTcpDelay({ port: node.port, delayMs });
  return {
    host: `127.0.0.1:${tcp.port}`,
    apiPort: node.port,
    close: async () => {
      await tcp.close();
      await relay.close();
      await node.stop();
    },
  };
}

async function post(apiPort: number, path: string, body: unknown): Promise<{ data: { token: string } }> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const url = `http://127.0.0.1:${apiPort}${path}`;
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return (await answer.json()) as { data: { token: string } };
}

const script = await pageScript();
const pages = createServer((request, response) => {
  if (request.url === '/page.js') response.setHeader('content-type', 'text/javascript').end(script);
  else response.setHeader('content-type', 'text/html').end('<!doctype html><body><script src="/page.js"></script>');
}).listen(0, '127.0.0.1');
await once(pages, 'listening');

async function newPage(browser: Browser): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`);
  return page;
}

/** Joins with one client. Returns the milliseconds until its first picture. */
async function join(browser: Browser, { host, apiPort }: Network, how: Client | 'publish'): Promise<number> {
  const { data } = await post(apiPort, '/room/first/peer', { type: 'webrtc', options: {} });
  const page = await newPage(browser);
  const ms = await page.evaluate<number>(`window.${how}('${host}', '${data.token}')`);
  if (how !== 'publish') await page.context().close();
  return ms;
}

async function measure(browser: Browser, network: Network): Promise<Record<Client, number[]>> {
  await post(network.apiPort, '/room', { roomId: 'first' });
  await join(browser, network, 'publish');
  const clients = ['bloom', 'published'] as const;
  const times = { bloom: [] as number[], published: [] as number[] };
  // The first join of each warms the browser up.
  for (const how of clients) await join(browser, network, how);
  for (let round = 0; round < rounds; round += 1) {
    for (const how of clients) times[how].push(await join(browser, network, how));
  }
  return times;
}

/** Returns the value that this share of all does not exceed. */
const percentile = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.ceil(times.length * share) - 1] ?? NaN;

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
try {
  for (const { roundTripMs, target } of NETWORKS) {
    const network = await openNetwork(address, roundTripMs);
    try {
      const times = await measure(browser, network);
      printTable(
        `From join to the first picture, ${roundTripMs} ms of round trip, ${rounds} joins each`,
        (['published', 'bloom'] as const).map((how) => ({
          client: CLIENTS[how],
          'p50 ms': Math.round(percentile(times[how], 0.5)),
          'p95 ms': Math.round(percentile(times[how], 0.95)),
        })),
      );
      const median = percentile(times.bloom, 0.5);
      printVerdict(`p50 with ${roundTripMs} ms of round trip`, median, target);
      printVerdict('of the time with the published SDK', median / percentile(times.published, 0.5), RATIO);
    } finally {
      for (const context of browser.contexts()) await context.close();
      await network.close();
    }
  }
} finally {
  await browser.close();
  pages.close();
}
