// Every kind of request, right and wrong, each for the first time in a fresh process: loading or compiling code on
// first use must not keep everybody else waiting.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { expect, jest, test } from '@jest/globals';
import WebSocket from 'ws';
import { repository } from '../harness/processes.js';
import { CheckedApi, operations } from './support/checked-api.js';
import { PeerConnection } from './support/peer-socket.js';
import { startProgram } from './support/program.js';

jest.setTimeout(300_000);

/** A participant notices no pause of this length. */
const LONGEST_MS = 100;
/** Time until a pause has been written to the file. */
const SETTLED_MS = 20;

interface Step {
  what: string;
  fromMs: number;
  toMs: number;
}

const json = { 'content-type': 'application/json' };

test('blocks the event loop for less than 100 ms the first time a request is made', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-loop-'));
  const file = join(folder, 'gaps');
  const preload = pathToFileURL(join(repository, 'e2e', 'node', 'support', 'loop-gaps.mjs'));
  const node = await startProgram({ NODE_OPTIONS: `--import=${preload.href}`, LOOP_GAPS: file });
  const api = new CheckedApi(node.url);
  const steps: Step[] = [];
  const step = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    const fromMs = Date.now();
    await work();
    await delay(SETTLED_MS);
    steps.push({ what, fromMs, toMs: Date.now() });
  };

  try {
    // The start itself does not count as a request.
    await delay(2_000);
    const readyMs = Date.now();
    for (const { method, template, path } of operations) {
      const name = `${method} ${template}`;
      const body = method === 'POST' || method === 'PATCH' ? '{}' : undefined;
      const options = { headers: json, ...(body === undefined ? {} : { body }) };
      await step(`${name} without a token`, () => api.raw(method, path, { ...options, authorization: null }));
      await step(`${name} with a wrong token`, () => api.raw(method, path, { ...options, authorization: 'Bearer x' }));
      // A drain has no way back but its own request, which follows.
      await step(`${name} that is nearly right`, () => api.raw(method, path, options));
      if (body === undefined) continue;
      await step(`${name} with half a body`, () => api.raw(method, path, { headers: json, body: '{' }));
      await step(`${name} with a body of the wrong shape`, () =>
        api.raw(method, path, { headers: json, body: '{"options":7,"maxPeers":"x"}' }),
      );
    }
    await step('a path that does not exist', () => api.raw('GET', '/nothing', {}));
    await step('the page of the API', () => fetch(`${node.url}/docs`).then((answer) => answer.text()));
    await step('the dashboard', () => fetch(`${node.url}/`).then((answer) => answer.text()));
    await step('the metrics', () => fetch(`${node.metricsUrl}/metrics`).then((answer) => answer.text()));

    const roomId = await api.room();
    for (const component of [{ type: 'file', options: { filePath: 'none.mp4' } }, { type: 'hls' }, { type: 'rtsp' }]) {
      await step(`a component of type ${component.type} that is refused`, () =>
        api.call('POST', `/room/${roomId}/component`, component),
      );
    }
    const { token } = await api.peer(roomId);
    await step('a peer that joins', async () => {
      const peer = await PeerConnection.joined(node.url, token, { name: 'ann' });
      peer.send({ type: 'custom', data: { type: 'sdpOffer', data: { sdpOffer: { type: 'offer', sdp: 'v=0' } } } });
      await delay(100);
      peer.socket.close();
      await peer.closed;
    });
    await step('a peer with a wrong token', async () => {
      const peer = await PeerConnection.open(node.url);
      peer.token('wrong');
      await peer.closed;
    });
    for (const path of ['peer', 'server']) {
      await step(`garbage at the ${path} websocket`, async () => {
        const socket = new WebSocket(`${node.url.replace(/^http/, 'ws')}/socket/${path}/websocket`);
        socket.on('error', () => undefined);
        socket.on('open', () => socket.send(Buffer.from([255, 254, 253])));
        await new Promise((resolve) => socket.once('close', resolve));
      });
    }
    await step('a WHIP offer that is none', () =>
      fetch(`${node.url}/whip`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/sdp' },
        body: 'v=0',
      }).then((answer) => answer.text()),
    );

    const gaps = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').filter(Boolean) : [];
    const stops = gaps
      .map((line) => line.split(' ').map(Number) as [number, number])
      .filter(([fromMs]) => fromMs >= readyMs)
      .map(([fromMs, toMs]) => ({
        ms: toMs - fromMs,
        request: steps.find((each) => each.fromMs <= toMs && fromMs <= each.toMs)?.what ?? 'none',
      }))
      .toSorted((a, b) => b.ms - a.ms);
    if (stops[0] !== undefined) console.info(`longest stop: ${stops[0].ms} ms, ${stops[0].request}`);
    expect(stops.filter(({ ms }) => ms >= LONGEST_MS)).toEqual([]);
  } finally {
    await node.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
});
