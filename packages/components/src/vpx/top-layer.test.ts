import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { superframe } from '@bloom/rtp';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { WebmContainer } from '../recording/webm-container.js';
import { ivfFrames } from '../testing/ivf.js';
import { vp9Frame } from '../testing/vpx.js';
import { TopLayer } from './top-layer.js';
import { readVp9Frame, splitSuperframe } from './vp9-header.js';

jest.setTimeout(60_000);
const hasFfmpeg = spawnSync('ffmpeg', ['-version']).status === 0;
if (!hasFfmpeg) process.stderr.write('*** ffmpeg is not installed, so hidden layers of VP9 are NOT DECODED. ***\n');
const withFfmpeg = hasFfmpeg ? test : test.skip;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bloom-top-layer-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Returns a hash of each picture that ffmpeg shows. */
function shown(path: string): string[] {
  const args = ['-v', 'error', '-xerror', '-i', path, '-vsync', '0', '-f', 'framemd5', '-'];
  const { stdout, stderr } = spawnSync('ffmpeg', args, { encoding: 'utf8' });
  expect(stderr).toBe('');

  return stdout
    .split('\n')
    .filter((line) => /^\d/.test(line))
    .map((line) => line.split(',').at(-1)!.trim());
}

describe('the top layer of VP9', () => {
  const size = [320, 180] as const;
  const low = vp9Frame({ key: true, size: [160, 90] });
  const high = vp9Frame({ size });

  test('is left as it is, and so is a picture without layers', () => {
    const layers = new TopLayer();
    expect(layers.show(low).equals(low)).toBe(true);
    const [, top] = splitSuperframe(layers.show(superframe([low, high])));
    expect(top?.equals(high)).toBe(true);
  });

  test('is the only one that is shown', () => {
    const layers = new TopLayer();
    layers.show(superframe([low, high]));
    const [below] = splitSuperframe(layers.show(superframe([vp9Frame({}), high])));
    // frame_marker, profile, show_existing_frame and frame_type are kept, show_frame is not.
    expect(below![0]! >> 2).toBe(vp9Frame({})[0]! >> 2);
    expect((below![0]! >> 1) & 1).toBe(0);
    expect(readVp9Frame(below!)).toEqual({ profile: 0, key: false });
  });

  withFfmpeg('hides frames without a change to what later ones show', () => {
    const [source, file] = [join(folder, 'all.ivf'), join(folder, 'top.webm')];
    // Independent of whether the frame before is shown, as layers are by their sizes.
    const codec = ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-error-resilient', 'default'];
    const input = ['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=30', '-t', '2'];
    expect(spawnSync('ffmpeg', [...input, ...codec, '-lag-in-frames', '0', source]).status).toBe(0);
    const frames = ivfFrames(readFileSync(source));
    expect(frames).toHaveLength(60);
    const container = new WebmContainer('vp9');
    const parts: Buffer[] = [];
    for (let i = 0; i < frames.length; i += 2) {
      const [first, second] = [frames[i]!, frames[i + 1]!];
      const data = superframe([first.data, second.data]);
      parts.push(container.frame({ timestamp: first.timestamp, key: first.key, data }));
    }
    writeFileSync(file, Buffer.concat([...parts, container.end()]));
    expect(shown(file)).toEqual(shown(source).filter((_, i) => i % 2 === 1));
  });

  test('survives garbage, which stays as it is or loses only its mark', () => {
    const frame = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
      fc.record({ key: fc.boolean(), shown: fc.boolean() }).map((options) => vp9Frame({ ...options, size })),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(frame, frame), { maxLength: 8 }), (pictures) => {
        const layers = new TopLayer();
        const harmed = pictures.filter(([below, top]) => {
          const [first, last] = splitSuperframe(layers.show(superframe([below, top])));
          const added = first!.length - below.length;
          const endsAlike = first!.subarray(-1).equals(below.subarray(-1)) || below.length < 40;

          return !(last?.equals(top) === true && (added === 0 || added === 1) && endsAlike);
        });
        expect(harmed).toEqual([]);
      }),
      { numRuns: fuzzRuns(5_000) },
    );
  });
});
