// A clapperboard: a picture that flashes white every second, and a beep half a second after each flash. They show how
// far sound and picture have drifted apart on the way.
import type { ClapperOptions } from './driver-api.js';
import type { Source } from './picture.js';

// Chromium's breakout box; not in the DOM library.
declare class MediaStreamTrackGenerator extends MediaStreamTrack {
  constructor(init: { kind: 'video' | 'audio' });
  readonly writable: WritableStream<VideoFrame | AudioData>;
}

const PERIOD_MS = 1_000;
const FLASH_MS = 100;
const BEEP_AFTER_MS = 500;
const BEEP_MS = 100;
const SAMPLES_PER_MS = 48;
const CHUNK_MS = 10;

/**
 * Creates the picture and its sound, in one stream like a camera's. Both go to their tracks directly, because sound
 * from Web Audio waits in buffers for an unknown time, longer on a busy machine.
 */
export function createClapper({ width = 320, height = 240, fps = 30 }: Omit<ClapperOptions, 'kind'>): Source[] {
  const startedAt = performance.now();
  let flashedAt = startedAt - FLASH_MS;
  const picture = createPicture({ width, height, fps }, (now) => {
    if (now - flashedAt >= PERIOD_MS) flashedAt = now;
    return now - flashedAt < FLASH_MS;
  });
  const sound = createSound(startedAt, (ms) => {
    const sinceMs = ms - flashedAt - BEEP_AFTER_MS;
    return sinceMs >= 0 && sinceMs < BEEP_MS;
  });
  const stream = new MediaStream([picture, sound]);

  return [picture, sound].map((track) => ({ track, stream }));
}

function createPicture(
  { width, height, fps }: { width: number; height: number; fps: number },
  flashes: (now: number) => boolean,
): MediaStreamTrack {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d');
  if (!context) throw new Error('no 2d canvas');
  const track = new MediaStreamTrackGenerator({ kind: 'video' });
  const writer = track.writable.getWriter();
  let frame = 0;
  const timer = setInterval(() => {
    if (track.readyState === 'ended') return clearInterval(timer);
    const now = performance.now();
    context.fillStyle = flashes(now) ? 'white' : 'black';
    context.fillRect(0, 0, width, height);
    // Every frame differs.
    context.fillStyle = 'grey';
    context.fillRect((frame * 7) % width, 0, 8, 8);
    frame += 1;
    writer.write(new VideoFrame(canvas, { timestamp: now * 1000 })).catch(() => clearInterval(timer));
  }, 1000 / fps);

  return track;
}

function createSound(startedAt: number, beeps: (ms: number) => boolean): MediaStreamTrack {
  const track = new MediaStreamTrackGenerator({ kind: 'audio' });
  const writer = track.writable.getWriter();
  const count = CHUNK_MS * SAMPLES_PER_MS;
  let chunks = 0;
  const timer = setInterval(() => {
    if (track.readyState === 'ended') return clearInterval(timer);
    for (; (chunks + 1) * CHUNK_MS <= performance.now() - startedAt; chunks += 1) {
      const data = Float32Array.from({ length: count }, (_, i) => {
        const at = chunks * count + i;
        return beeps(startedAt + at / SAMPLES_PER_MS) ? 0.8 * Math.sin((2 * Math.PI * 1_000 * at) / 48_000) : 0;
      });
      const timestamp = (startedAt + chunks * CHUNK_MS) * 1000;
      const init = { format: 'f32-planar', sampleRate: 48_000, numberOfFrames: count, numberOfChannels: 1 } as const;
      writer.write(new AudioData({ ...init, timestamp, data })).catch(() => clearInterval(timer));
    }
  }, CHUNK_MS);

  return track;
}
