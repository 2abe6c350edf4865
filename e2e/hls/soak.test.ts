// Runs a stream for minutes while people come and go and viewers wait for parts, and checks that memory is released.
// Runs at night.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Api } from '../harness/api.js';
import { type BloomNode, startNode } from '../harness/bloom-node.js';
import { describeWith } from '../harness/needs.js';
import { makeSources } from './sources.js';
import { fetchFrom } from './support.js';

const minutes = Number(process.env['BLOOM_SOAK_MINUTES'] ?? 5);
/** Time in which code is compiled and pools fill. */
const warmUpMs = (minutes * 60_000 * 2) / 5;
/** Allowed growth of memory after the warm-up. A compositor levels off after some fifty people have come and gone. */
const GROWTH_BOUND = { node: 1.1, compositor: 1.15 };

describeWith(['nightly', 'node-av', 'ffmpeg'], 'A long stream', () => {
  let resources: string;
  let node: BloomNode;
  let api: Api;

  beforeAll(async () => {
    resources = mkdtempSync(join(tmpdir(), 'bloom-soak-'));
    await makeSources(resources);
    node = await startNode({ env: { JF_RESOURCES_BASE_PATH: resources, JF_MEDIA_WORKERS: '1' } });
    api = new Api(node.url);
  }, 60_000);
  afterAll(async () => {
    await node?.stop();
    rmSync(resources, { recursive: true, force: true });
  });

  const megabytes = (pid: number): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1_024;
  const handles = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;
  const files = (room: string): string[] => {
    const base = join(resources, 'temporary_hls');
    return readdirSync(join(base, readdirSync(base).find((name) => name.startsWith(room))!));
  };

  test(
    'takes no more memory, handles and disk at the end than after its warm-up',
    async () => {
      const room = await api.createRoom({ videoCodec: 'h264' });
      const add = async (type: string, options: unknown): Promise<string> => {
        const { status, body } = await api.request('POST', `/room/${room}/component`, { type, options });
        expect(status).toBe(201);
        return body.data.id;
      };
      const leave = (id: string): Promise<unknown> => api.request('DELETE', `/room/${room}/component/${id}`);
      await add('hls', { lowLatency: true, targetWindowDuration: 20 });
      await add('file', { filePath: 'red.h264', framerate: 15 });
      const { stdout } = spawnSync('cat', [`/proc/${node.pid}/task/${node.pid}/children`]);
      const compositor = Number(stdout.toString().trim());

      let running = true;
      const visitors = (async () => {
        while (running) {
          const ids = [await add('file', { filePath: 'red.h264' }), await add('file', { filePath: 'tone.ogg' })];
          await delay(2_000);
          await Promise.all(ids.map(leave));
        }
      })();
      const viewers = Array.from({ length: 20 }, async () => {
        while (running) {
          const { text } = await fetchFrom(node.url, `/hls/${room}/main.m3u8`);
          const hinted = /PRELOAD-HINT:TYPE=PART,URI="muxed_segment_(\d+)_main_(\d)_part/.exec(text);
          if (hinted === null) await delay(500);
          else await fetchFrom(node.url, `/hls/${room}/main.m3u8?_HLS_msn=${hinted[1]}&_HLS_part=${hinted[2]}`);
        }
      });

      const read = () => ({
        node: megabytes(node.pid),
        compositor: megabytes(compositor),
        handles: handles(node.pid) + handles(compositor),
        files: files(room).length,
      });
      await delay(warmUpMs);
      const before = read();
      const seen: ReturnType<typeof read>[] = [];
      const until = Date.now() + minutes * 60_000 - warmUpMs;
      while (Date.now() < until) {
        await delay(5_000);
        seen.push(read());
      }
      running = false;
      await Promise.all([visitors, ...viewers]);

      // The lowest of the last readings, because the heap grows until it is collected.
      const last = seen.slice(-6);
      const least = (of: (reading: ReturnType<typeof read>) => number): number => Math.min(...last.map(of));
      console.log(`memory of a stream: ${JSON.stringify({ before, last: last.at(-1) })}`);
      expect(least(({ node: mb }) => mb)).toBeLessThan(before.node * GROWTH_BOUND.node);
      expect(least(({ compositor: mb }) => mb)).toBeLessThan(before.compositor * GROWTH_BOUND.compositor);
      expect(least(({ handles: count }) => count)).toBeLessThanOrEqual(before.handles + 5);
      expect(least(({ files: count }) => count)).toBeLessThanOrEqual(before.files + 2);
    },
    (minutes + 2) * 60_000,
  );
});
