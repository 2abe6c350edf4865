// Tests unmodified third-party programs together with a page that uses the guide's code.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { until } from '../cluster/until.js';
import { promise } from '../harness/measurements.js';
import { repository } from '../harness/processes.js';
import { testWith } from '../harness/needs.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { GuidePage } from './guide-page.js';
import { Program } from './program.js';

const stillBoundMs = 400;
const python = '/usr/bin/python3';

/** Creates a room with two peers that have not connected. */
async function pair(stage: Stage) {
  const room = await stage.room();
  const [ann, eve] = [await stage.api.addPeer(room), await stage.api.addPeer(room)];
  return { room, ann, eve, whip: `${stage.node.url}/whip`, whep: `${stage.node.url}/whep` };
}

async function statusOf(stage: Stage, room: string, id: string): Promise<string> {
  const { peers } = await stage.api.room(room);
  return peers.find((peer: { id: string }) => peer.id === id).status;
}

const publishers = [
  // Its picture is green.
  ['aiortc', { file: 'aiortc_client.py', role: 'publish', colour: 'green', need: 'aiortc' }],
  ['GStreamer', { file: 'gstreamer_client.py', role: 'publish', colour: 'blue', need: 'webrtcbin' }],
  [
    'GStreamer with parameter sets only in its offer',
    { file: 'gstreamer_client.py', role: 'sprop', colour: 'blue', need: 'webrtcbin' },
  ],
] as const;

browserSuite('Programs by WHIP and WHEP', {}, (stage) => {
  for (const [name, { file, role, colour, need }] of publishers) {
    testWith([need], `${name} publishes, and a page shows its picture`, async () => {
      const { room, ann, eve, whip, whep } = await pair(stage);
      const program = new Program([python, file], [role, whip, ann.token]);
      await program.prints(/^answered/);
      const page = await GuidePage.open(stage.browser);
      await page.watch(`${whep}?peer=${ann.id}`, eve.token);
      await page.sees(colour);
      const { tracks } = (await stage.api.room(room)).peers[0];
      expect(tracks.map(({ type }: { type: string }) => type).toSorted()).toEqual(['audio', 'video']);

      await program.end();
      expect(await statusOf(stage, room, ann.id)).toBe('disconnected');
      await page.close();
    });
  }

  testWith(['webrtcbin'], 'an encoder with B-frames is logged with the setting to change', async () => {
    const { ann, whip } = await pair(stage);
    const program = new Program([python, 'gstreamer_client.py'], ['b-frames', whip, ann.token]);
    await program.prints(/^answered/);
    await until('the warning', () => /room\.track_b_frames.*bframes=0/.test(stage.node.log()));
    await program.end();
  });

  testWith(['aiortc'], 'aiortc plays the media of a page', async () => {
    const { room, ann, eve, whip, whep } = await pair(stage);
    const program = new Program([python, 'aiortc_client.py'], ['watch', whep, eve.token]);
    await program.prints(/^answered/);
    const page = await GuidePage.open(stage.browser);
    await page.publish('red', { url: whip, token: ann.token });
    expect(await program.prints(/^frame/)).toBe('frame 640 360');

    await program.end();
    expect(await statusOf(stage, room, eve.id)).toBe('disconnected');
    await page.close();
  });

  testWith(['webrtcbin'], 'GStreamer follows the speaker, and the picture never stops', async () => {
    const { room, eve, whip, whep } = await pair(stage);
    const publish = async (colour: string): Promise<GuidePage> => {
      const page = await GuidePage.open(stage.browser);
      await page.publish(colour, { url: whip, token: (await stage.api.addPeer(room)).token });
      return page;
    };
    const [red, blue] = [await publish('red'), await publish('blue')];
    const program = new Program([python, 'gstreamer_client.py'], ['watch', whep, eve.token]);
    const frame = { red: /^frame \d+ 2\d\d \d?\d \d?\d$/, blue: /^frame \d+ \d?\d \d?\d 2\d\d$/ };
    await program.prints(frame.red);

    for (const [speaker, silent, colour] of [
      [blue, red, 'blue'],
      [red, blue, 'red'],
    ] as const) {
      const seen = program.lines.length;
      await silent.setLoud(false);
      await speaker.setLoud(true);
      await program.prints(frame[colour], seen);
    }
    const times = program.lines.flatMap((line) => (line.startsWith('frame') ? [Number(line.split(' ')[1])] : []));
    promise('longest time without a new picture', longestGap(times), stillBoundMs);

    await program.end();
    await Promise.all([red, blue].map((page) => page.close()));
  });

  testWith(
    ['ffmpeg', 'node-av'],
    'FFmpeg publishes with the command of the guide, and a page shows its picture',
    async () => {
      const { room, ann, eve, whip, whep } = await pair(stage);
      const [encoding, muxing] = guideLine({ WHIP_URL: whip, TOKEN: ann.token });
      // The encoders are from Debian's FFmpeg, which lacks WHIP; the muxer is from FFmpeg 8.
      const source = '-v error -re -f lavfi -i color=0xC81E1E:s=320x240:r=25 -f lavfi -i sine=f=440'.split(' ');
      const encoder = spawn('ffmpeg', [...source, ...encoding, '-f', 'nut', 'pipe:1'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const program = new Program([process.execPath, 'ffmpeg-whip.mjs'], muxing, encoder.stdout);
      try {
        await program.prints(/^answered/);
        const page = await GuidePage.open(stage.browser);
        await page.watch(`${whep}?peer=${ann.id}`, eve.token);
        await page.sees('red');
        expect((await stage.api.room(room)).peers[0].tracks).toHaveLength(2);
        await page.close();
      } finally {
        encoder.kill('SIGKILL');
        await program.end();
      }
      expect(await statusOf(stage, room, ann.id)).toBe('disconnected');
    },
  );
});

function longestGap(times: readonly number[]): number {
  return Math.max(...times.slice(1).map((at, index) => at - times[index]!));
}

/** Returns the options of the guide's command: the encoders' and the muxer's. */
function guideLine(values: Readonly<Record<string, string>>): [encoding: string[], muxing: string[]] {
  const guide = readFileSync(join(repository, 'docs', 'guide', 'whip.md'), 'utf8');
  const command = /^ffmpeg .*?[^\\]$/ms.exec(guide)?.[0] ?? '';
  const words = command.replaceAll('\\\n', ' ').replaceAll('"', '').split(/\s+/);
  const filled = words.map((word) => values[word.slice(1)] ?? word);
  const [first, format] = [filled.indexOf('-c:v'), filled.indexOf('-f')];
  expect(filled.slice(format, format + 2)).toEqual(['-f', 'whip']);

  return [filled.slice(first, format), filled.slice(format + 2)];
}
