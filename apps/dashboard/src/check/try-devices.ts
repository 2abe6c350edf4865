// Tries camera, microphone and loudspeaker.
import type { Finding } from './report.js';

/** How long the microphone is listened to, and how often, ms. */
const LISTEN_MS = 2_000;
const LOOK_MS = 50;
/** Root mean square of the samples, of at most 1, from which there is sound: a quiet room is above it. */
const SILENT = 0.0005;
const TONE_HZ = 440;
const TONE_MS = 600;

const WHY: Readonly<Record<string, string>> = {
  NotAllowedError: 'The browser has no permission to use it.',
  NotFoundError: 'None was found.',
  NotReadableError: 'Another program uses it.',
  OverconstrainedError: 'It has no usable picture or sound.',
};

const HELP: Readonly<Record<string, string>> = {
  NotAllowedError: 'Allow it next to the address of this page and in the system settings, then check again.',
  NotFoundError: 'Connect one, then check again.',
  NotReadableError: 'Close the other program, then check again.',
};

/** Opens the camera. The caller stops the track. */
export async function tryCamera(): Promise<{ finding: Finding; track: MediaStreamTrack | null }> {
  try {
    const stream = await open({ video: true });
    const track = stream.getVideoTracks()[0] ?? null;
    const { width, height } = track?.getSettings() ?? {};
    const size = width === undefined || height === undefined ? '' : `, ${width} x ${height}`;
    return { finding: { state: 'good', text: `${track?.label || 'A camera'}${size}.` }, track };
  } catch (error) {
    return { finding: missing(error), track: null };
  }
}

/** Listens to the microphone for two seconds. */
export async function tryMicrophone(): Promise<Finding> {
  let stream: MediaStream;
  try {
    stream = await open({ audio: true });
  } catch (error) {
    return missing(error);
  }
  const [track] = stream.getAudioTracks();
  const name = track?.label || 'A microphone';
  try {
    if ((await loudestOf(stream)) >= SILENT) return { state: 'good', text: `${name}.` };
    return {
      state: 'bad',
      text: `${name} gives no sound.`,
      ask: 'Unmute it on the device or in the system settings, then check again.',
    };
  } finally {
    for (const each of stream.getTracks()) each.stop();
  }
}

/** Plays a tone. Browsers allow it only after a person has pressed something. */
export async function trySound(): Promise<Finding> {
  const context = new AudioContext();
  try {
    await Promise.race([context.resume(), pause(TONE_MS)]);
    if (context.state !== 'running') {
      return {
        state: 'bad',
        text: 'The browser plays no sound.',
        ask: 'Connect a loudspeaker or headphones, then check again.',
      };
    }
    const tone = new OscillatorNode(context, { frequency: TONE_HZ });
    tone.connect(new GainNode(context, { gain: 0.2 })).connect(context.destination);
    tone.start();
    await pause(TONE_MS);
    return {
      state: 'good',
      text: 'A tone was played. If you did not hear it, raise the volume or choose another device.',
    };
  } finally {
    await context.close();
  }
}

/** Resolves with the level of the loudest moment: the root mean square of its samples. */
async function loudestOf(stream: MediaStream): Promise<number> {
  const context = new AudioContext();
  try {
    const analyser = new AnalyserNode(context, { fftSize: 2_048 });
    new MediaStreamAudioSourceNode(context, { mediaStream: stream }).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    let loudest = 0;
    for (const endsAt = performance.now() + LISTEN_MS; performance.now() < endsAt && loudest < SILENT; ) {
      await pause(LOOK_MS);
      analyser.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
      loudest = Math.max(loudest, Math.sqrt(power));
    }
    return loudest;
  } finally {
    await context.close();
  }
}

function open(wanted: MediaStreamConstraints): Promise<MediaStream> {
  // Pages over plain HTTP have no devices, except those of this machine.
  const devices = navigator.mediaDevices as MediaDevices | undefined;
  if (devices === undefined) return Promise.reject(new DOMException('', 'InsecurePage'));
  return devices.getUserMedia(wanted);
}

function missing(error: unknown): Finding {
  const name = (error as { name?: string }).name ?? '';
  if (name === 'InsecurePage') {
    return { state: 'bad', text: 'This page has no devices.', ask: 'Open it over https.' };
  }
  return {
    state: 'bad',
    text: WHY[name] ?? `It does not start: ${(error as Error).message}.`,
    ask: HELP[name] ?? 'Connect another one, then check again.',
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
