// LiveKit's command line, unmodified. It has no package of its own: whoever has it has built or downloaded it.
import { spawn, spawnSync } from 'node:child_process';
import { env, KEY, SECRET } from './livekit.mjs';

const RUN_MS = 60_000;
const SUBSCRIBERS = 10;

const asClient = (url) => ({
  ...process.env,
  LIVEKIT_URL: url,
  LIVEKIT_API_KEY: KEY,
  LIVEKIT_API_SECRET: SECRET,
});

/** Resolves with what `lk` prints, by its errors too. */
async function lk(url, args) {
  const child = spawn('lk', args, { env: asClient(url), stdio: ['ignore', 'pipe', 'pipe'], timeout: RUN_MS });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
  await new Promise((resolve) => child.once('close', resolve));

  return output;
}

/** Each subscriber has to get the only track, whole. `lk` reads every track as H.264, and counts no other's losses. */
async function load(url, codec) {
  const people = ['--video-publishers', '1', '--subscribers', String(SUBSCRIBERS), '--num-per-second', '10'];
  const track = ['--room', codec, '--video-codec', codec, '--duration', '5s'];
  const output = await lk(url, ['perf', 'load-test', ...track, ...people]);
  const total = output.split('\n').findLast((line) => line.includes('Total ')) ?? '';
  const isWhole = codec !== 'h264' || total.includes(' 0 (0%)');

  return isWhole && total.includes(`${SUBSCRIBERS}/${SUBSCRIBERS} `) ? undefined : `${codec}: ${output}`;
}

async function demo(url) {
  const joined = spawn('lk', ['room', 'join', '--identity', 'demo', '--publish-demo', 'kitchen'], {
    env: asClient(url),
    stdio: 'ignore',
  });
  try {
    let list = '';
    for (const until = Date.now() + RUN_MS; !list.includes('demo (ACTIVE)\t tracks: 1'); ) {
      if (Date.now() > until) return `nobody publishes the demo: ${list}`;
      list = await lk(url, ['room', 'participants', 'list', 'kitchen']);
    }
    const removed = await lk(url, ['room', 'participants', 'remove', '--room', 'kitchen', 'demo']);

    return removed.includes('successfully removed') ? undefined : removed;
  } finally {
    joined.kill();
  }
}

export const livekitCli = {
  title: `lk publishes its demo, and loads rooms with ${SUBSCRIBERS} subscribers in VP8 and, without loss, in H.264`,
  missing: () => (spawnSync('lk', ['--version']).status === 0 ? undefined : "lk, LiveKit's command line"),
  env,
  run: async ({ url }) => (await demo(url)) ?? (await load(url, 'vp8')) ?? (await load(url, 'h264')),
};
