// Proves the instrument by which the attacks are judged: it blames the node for the node's pauses only.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Api } from '../harness/api.js';
import { type BloomNode, startNode } from '../harness/bloom-node.js';
import { SampledCall } from './harness/sampler.js';

const PAUSE_MS = 600;

let node: BloomNode;
let call: SampledCall;
beforeAll(async () => {
  node = await startNode({ env: { JF_MEDIA_WORKERS: '1' } });
  call = await SampledCall.start(node, new Api(node.url));
}, 60_000);
afterAll(async () => {
  call?.stop();
  await node?.stop();
});

/** Returns what the call missed while a process stood still. */
async function missedDuringPauseOf(pid: number): Promise<string[]> {
  await call.restart();
  await delay(300);
  process.kill(pid, 'SIGSTOP');
  await delay(PAUSE_MS);
  process.kill(pid, 'SIGCONT');
  await delay(300);

  return call.missed();
}

test('reports a pause of the node', async () => {
  expect(await missedDuringPauseOf(node.pid)).toEqual([
    expect.stringMatching(/^another room heard nothing for \d+ ms$/),
  ]);
});

test('blames nobody for a pause of its own', async () => {
  expect(await missedDuringPauseOf(call.pid)).toEqual([]);
});
