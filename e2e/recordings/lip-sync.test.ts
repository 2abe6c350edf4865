// Records a clapperboard in Chromium; ffmpeg finds its flashes and beeps.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect } from '@jest/globals';
import { middle, promise } from '../harness/measurements.js';
import { testWith } from '../harness/needs.js';
import { browserSuite } from '../harness/stage.js';
import { apart, beeps, decodedSeconds, flashes } from './analysis.js';
import { addComponent, credentials, finishedPart, noStore, type RecordedTrack, trackOf } from './parts.js';

const resources = mkdtempSync(join(tmpdir(), 'bloom-e2e-lip-sync-'));
afterAll(() => rmSync(resources, { recursive: true, force: true }));

/** Delay of the beeps after the flashes. */
const BEEP_AFTER_MS = 500;
const BOUND_MS = 40;

/** Returns the time of each beep and its distance from its expected place, by the report and ffmpeg. */
async function apartInRecording(part: string): Promise<{ atMs: number; apartMs: number }[]> {
  const [video, audio] = [trackOf(part, 'video'), trackOf(part, 'audio')];
  const flashesMs = (await flashes(video.path)).map((ms) => ms + video.offsetMs);
  const beepsMs = (await beeps(audio.path)).map((ms) => ms + audio.offsetMs);
  // The first beep's flash may precede the recording.
  return apart(flashesMs, beepsMs, BEEP_AFTER_MS)
    .map((apartMs, i) => ({ atMs: beepsMs[i]!, apartMs }))
    .filter(({ atMs }) => atMs > (flashesMs[0] ?? 0) + 600);
}

/** Returns the end of the file, in ms from the start of the recording. */
async function endOf(track: RecordedTrack): Promise<number> {
  return track.offsetMs + (await decodedSeconds(track.path)) * 1_000;
}

browserSuite(
  'Lip sync of a recording',
  { node: { env: { JF_RESOURCES_BASE_PATH: resources, JF_S3_ENDPOINT: noStore } } },
  (stage) => {
    testWith(
      ['ffmpeg'],
      'sound and picture of a recorded peer are within 40 ms, and as long as the recording',
      async () => {
        const { ann, bob, room } = await stage.call(['ann', 'bob'], { videoCodec: 'h264' });
        const { picture, sound } = await ann.addClapper();
        await Promise.all([bob.plays(picture), bob.ready(sound)]);
        const askedAt = performance.now();
        const recording = await addComponent(stage.api, room, { type: 'recording', options: { credentials } });
        const beganAt = performance.now();
        await delay(8_000);
        const shortestMs = performance.now() - beganAt;
        await stage.api.request('DELETE', `/room/${room}/component/${recording}`);
        const longestMs = performance.now() - askedAt;

        const part = await finishedPart(resources, room);
        const measured = await apartInRecording(part);
        expect(measured.length).toBeGreaterThanOrEqual(4);
        // A busy browser may be late with a single flash.
        promise('sound from picture', middle(measured.map(({ apartMs }) => Math.abs(apartMs))), BOUND_MS);
        for (const type of ['audio', 'video'] as const) {
          const endMs = await endOf(trackOf(part, type));
          const outsideMs = Math.max(shortestMs - endMs, endMs - longestMs, 0);
          promise(`end of the ${type} from that of the recording`, outsideMs, 200);
        }
      },
    );

    // The browser reports the position of its sound only every five seconds.
    testWith(['nightly', 'ffmpeg'], 'sound and picture stay together after the sound was muted', async () => {
      const { ann, bob, room } = await stage.call(['ann', 'bob'], { videoCodec: 'h264' });
      const { picture, sound } = await ann.addClapper();
      await Promise.all([bob.plays(picture), bob.ready(sound)]);
      const recording = await addComponent(stage.api, room, { type: 'recording', options: { credentials } });
      const began = performance.now();
      await delay(6_000);
      const mutedMs = performance.now() - began;
      await ann.call('muteSender', sound);
      await delay(4_000);
      await ann.call('unmuteSender', sound);
      const backMs = performance.now() - began;
      await delay(12_000);
      await stage.api.request('DELETE', `/room/${room}/component/${recording}`);
      const lastedMs = performance.now() - began;

      const part = await finishedPart(resources, room);
      const measured = await apartInRecording(part);
      const within = (from: number, to: number): number[] =>
        measured.filter(({ atMs }) => atMs > from && atMs < to).map(({ apartMs }) => Math.abs(apartMs));
      expect(within(mutedMs + 500, backMs - 500)).toEqual([]);
      const [before, soon, after] = [
        within(0, mutedMs),
        within(backMs, backMs + 6_000),
        within(backMs + 6_000, lastedMs),
      ];
      expect(Math.min(before.length, soon.length, after.length)).toBeGreaterThanOrEqual(3);
      for (const apartMs of [...before, ...after]) promise('sound from picture', apartMs, BOUND_MS);
      for (const apartMs of soon) promise('sound from picture right after a pause', apartMs, 150);
      promise(
        'end of the audio from that of the recording',
        Math.abs((await endOf(trackOf(part, 'audio'))) - lastedMs),
        200,
      );
    });

    testWith(['nightly', 'ffmpeg'], 'sound and picture stay together when another encoding is recorded', async () => {
      const { ann, bob, room } = await stage.call(['ann', 'bob'], { videoCodec: 'h264' });
      const large = { width: 960, height: 540 };
      const { picture, sound } = await ann.addClapper(large, { simulcast: ['l', 'm', 'h'] });
      await Promise.all([bob.plays(picture), bob.ready(sound)]);
      const recording = await addComponent(stage.api, room, { type: 'recording', options: { credentials } });
      const began = performance.now();
      await delay(8_000);
      await ann.call('disableEncoding', picture, 'h');
      const lowerMs = performance.now() - began;
      await delay(10_000);
      await stage.api.request('DELETE', `/room/${room}/component/${recording}`);

      const measured = await apartInRecording(await finishedPart(resources, room));
      // It takes three reports, at one a second, to be sure.
      const settled = measured.filter(({ atMs }) => atMs < lowerMs || atMs > lowerMs + 5_000);
      expect(settled.filter(({ atMs }) => atMs > lowerMs).length).toBeGreaterThanOrEqual(3);
      for (const { apartMs } of settled) promise('sound from picture', Math.abs(apartMs), BOUND_MS);
      for (const { apartMs } of measured) promise('sound from picture right after a change', Math.abs(apartMs), 150);
    });
  },
);
