import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from '../http/client.js';
import type { BenchNode } from '../http/node.js';

/** Creates files to play into rooms: pictures with much motion, 30 a second, and a tone. */
export function makeSources(resources: string, seconds: number): void {
  const directory = join(resources, 'file_component_sources');
  mkdirSync(directory, { recursive: true });
  const make = (input: string, args: readonly string[], name: string): void => {
    const from = ['-v', 'error', '-f', 'lavfi', '-i', input, '-t', String(seconds)];
    execFileSync('ffmpeg', [...from, ...args, join(directory, name)]);
  };
  const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-profile:v', 'baseline', '-b:v', '2M'];
  make('testsrc2=s=1280x720:r=30', [...h264, '-g', '30', '-pix_fmt', 'yuv420p'], '720p.h264');
  make('sine=frequency=440:sample_rate=48000', ['-c:a', 'libopus'], 'tone.ogg');
}

/** Opens a room with this many people, played from files, and a low-latency stream that can be played. */
export async function streamedRoom(node: BenchNode, people: number): Promise<string> {
  const client = new Client(node.port);
  try {
    const room = await client.json(201, 'POST /room', { videoCodec: 'h264' });
    const roomId = String(room.data.room.id);
    const add = (type: string, options: unknown): Promise<unknown> =>
      client.json(201, `POST /room/${roomId}/component`, { type, options });
    await add('hls', { lowLatency: true, targetWindowDuration: 20 });
    for (let i = 0; i < people; i += 1) {
      await add('file', { filePath: '720p.h264', framerate: 30 });
      await add('file', { filePath: 'tone.ogg' });
    }
    const deadline = Date.now() + 20_000;
    for (;;) {
      const { data } = await client.json(200, 'GET', `/room/${roomId}`);
      if (data.components[0].properties.playable === true) return roomId;
      if (Date.now() > deadline) throw new Error('the stream did not become playable within 20 s');
      await delay(100);
    }
  } finally {
    client.close();
  }
}

/** Returns the process id of the compositor of the node's only stream. */
export function compositorOf(nodePid: number): number {
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8');
      if (parent === nodePid && command.includes('engine-main')) return Number(entry);
    } catch {
      // The process has ended by now.
    }
  }
  throw new Error(`process ${nodePid} has no compositor`);
}
