// Records for five minutes, at night, and checks that written data leaves nothing in memory.
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { Api } from '../harness/api.js';
import { repository } from '../harness/processes.js';
import { describeWith } from '../harness/needs.js';
import { decodedSeconds } from './analysis.js';
import { addComponent, credentials, finishedPart, noStore, tracksOf } from './parts.js';
import { sourcesIn } from './sources.js';

const SECONDS = 300;
/** Time after which buffers are full and code is compiled. */
const SETTLED_SECONDS = 60;
const GROWTH_BYTES = 4_000_000;

describeWith(['nightly', 'ffmpeg'], 'A long recording', () => {
  let folder: string;
  let resources: string;
  let child: ChildProcess;
  let api: Api;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bloom-e2e-soak-'));
    resources = join(folder, 'resources');
    const { film, tone } = await sourcesIn(resources);
    await film('long.h264', 'testsrc2=s=640x360:r=30', { seconds: SECONDS + 10 });
    await tone('long.ogg', 440, SECONDS + 10);
    child = fork(join(repository, 'e2e', 'node', 'support', 'observed-node.mjs'), [], {
      execArgv: ['--expose-gc'],
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        JF_PORT: String(await freeTcpPort()),
        JF_METRICS_PORT: String(await freeTcpPort()),
        JF_RESOURCES_BASE_PATH: resources,
        JF_S3_ENDPOINT: noStore,
      },
    });
    const [{ url }] = (await once(child, 'message')) as [{ url: string }];
    api = new Api(url);
  }, 120_000);
  afterAll(async () => {
    const exited = once(child, 'exit');
    child.disconnect();
    await exited;
    rmSync(folder, { recursive: true, force: true });
  });

  async function heapBytes(): Promise<number> {
    const answer = once(child, 'message');
    child.send('measure');
    return ((await answer) as [{ heapBytes: number }])[0].heapBytes;
  }

  test(
    'keeps the heap flat, and its duration is right',
    async () => {
      const room = await api.createRoom({ videoCodec: 'h264' });
      await addComponent(api, room, { type: 'recording', options: { credentials } });
      for (const filePath of ['long.h264', 'long.ogg'])
        await addComponent(api, room, { type: 'file', options: { filePath } });
      const began = performance.now();
      await delay(SETTLED_SECONDS * 1_000);
      const settled = await heapBytes();
      await delay(SECONDS * 1_000 - (performance.now() - began));
      const grown = (await heapBytes()) - settled;
      const seconds = (performance.now() - began) / 1_000;
      await api.deleteRoom(room);
      const tracks = tracksOf(await finishedPart(resources, room));
      expect(tracks).toHaveLength(2);
      for (const { path, offsetMs } of tracks) {
        expect(Math.abs(offsetMs / 1_000 + (await decodedSeconds(path)) - seconds)).toBeLessThan(0.5);
      }
      process.stderr.write(`heap after ${SECONDS} s of recording: ${(grown / 1e6).toFixed(1)} MB more\n`);
      expect(grown).toBeLessThan(GROWTH_BYTES);
    },
    (SECONDS + 60) * 1_000,
  );
});
