// LiveKit's native SDK for Node, which has the Rust core of its other native SDKs.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import { browserSuite } from '../harness/stage.js';
import { livekitNode, Participant, tokenFor } from './participant.js';

const RECEIVED_MS = 15_000;

interface Received {
  hz?: number;
  rgb?: [number, number, number];
}

browserSuite('rtc-node with Bloom', { node: { env: livekitNode } }, (stage) => {
  test('sees and hears livekit-client, and is seen and heard by it', async () => {
    const [room, url] = ['native', stage.node.url.replace('http', 'ws')];
    const ann = await Participant.join(await stage.page('livekit'), { url, room, identity: 'ann' });
    await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
    await ann.page.evaluate(() => window.livekit.publishTone(440));
    const program = fileURLToPath(new URL('./native-person.mjs', import.meta.url));
    const bob = spawn(process.execPath, [program, url, await tokenFor(room, 'bob')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const received: Received = {};
      // The SDK logs there, too.
      createInterface({ input: bob.stdout }).on('line', (line) => {
        if (/^\{"(hz|rgb)"/.test(line)) Object.assign(received, JSON.parse(line));
      });
      await ann.plays('blue', 'bob');
      await ann.hears(880, 'bob');
      await until(() => received.hz !== undefined && received.rgb !== undefined, RECEIVED_MS);
      expect(Math.abs((received.hz ?? 0) - 440)).toBeLessThan(20);
      const [red, green, blue] = received.rgb ?? [0, 0, 0];
      expect(red).toBeGreaterThan(150);
      expect(Math.max(green, blue)).toBeLessThan(100);
    } finally {
      bob.kill('SIGKILL');
    }
  });
});
