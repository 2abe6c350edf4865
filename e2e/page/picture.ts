// Generated media: a moving picture of one colour and a plain tone, without camera, microphone or permission.
import { colours, type Colour, type PictureOptions, type ToneOptions } from './driver-api.js';

// Chromium's breakout box; not in the DOM library, and not in Firefox.
declare class MediaStreamTrackGenerator extends MediaStreamTrack {
  constructor(init: { kind: 'video' | 'audio' });
  readonly writable: WritableStream<VideoFrame>;
}

export interface Source {
  readonly track: MediaStreamTrack;
  readonly stream: MediaStream;
}

/**
 * A timer creates the frames and hands them to the track directly. A captured canvas stops while its page is hidden,
 * and only one page of a browser is visible.
 */
export function createPicture(options: PictureOptions): Source {
  const { colour, width = 320, height = 240, fps = 10, noisy = false } = options;
  const { canvas, track, show } =
    'MediaStreamTrackGenerator' in globalThis ? written(width, height) : captured(width, height);
  const context = canvas.getContext('2d', { willReadFrequently: true }) as OffscreenCanvasRenderingContext2D | null;
  if (!context) throw new Error('no 2d canvas');
  const share = noisy === true ? 0.5 : Number(noisy);
  const noise = share > 0 ? context.createImageData(width, Math.floor(height * share)) : undefined;
  const fill = `rgb(${colours[colour].join(' ')})`;

  let frame = 0;
  const timer = setInterval(() => {
    if (track.readyState === 'ended') return clearInterval(timer);
    context.fillStyle = fill;
    context.fillRect(0, 0, width, height);
    if (noise) {
      const words = new Uint32Array(noise.data.buffer);
      for (let i = 0; i < words.length; i += 1) words[i] = (Math.random() * 0xffffff) | 0xff000000;
      context.putImageData(noise, 0, height - noise.height);
    } else {
      // A bar moves through the lower third, so every frame differs while the upper part stays plain for colour checks.
      context.fillStyle = 'white';
      context.fillRect((frame * 13) % width, Math.floor(height * 0.7), Math.ceil(width / 10), Math.floor(height * 0.2));
    }
    frame += 1;
    show().catch(() => clearInterval(timer));
  }, 1000 / fps);

  return { track, stream: new MediaStream([track]) };
}

interface Painted {
  canvas: OffscreenCanvas | HTMLCanvasElement;
  track: MediaStreamTrack;
  /** Sends the painted canvas as a frame. */
  show: () => Promise<void>;
}

function written(width: number, height: number): Painted {
  const canvas = new OffscreenCanvas(width, height);
  const track = new MediaStreamTrackGenerator({ kind: 'video' });
  const writer = track.writable.getWriter();

  return { canvas, track, show: () => writer.write(new VideoFrame(canvas, { timestamp: performance.now() * 1000 })) };
}

function captured(width: number, height: number): Painted {
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  canvas.getContext('2d', { willReadFrequently: true });
  const [track] = canvas.captureStream().getVideoTracks();
  if (!track) throw new Error('no video track');

  return { canvas, track, show: async () => undefined };
}

let audio: AudioContext | undefined;

export function audioContext(): AudioContext {
  audio ??= new AudioContext();
  return audio;
}

export function createTone({ hz }: ToneOptions): Source {
  const context = audioContext();
  const oscillator = new OscillatorNode(context, { frequency: hz });
  const destination = context.createMediaStreamDestination();
  oscillator.connect(new GainNode(context, { gain: 0.5 })).connect(destination);
  oscillator.start();
  const [track] = destination.stream.getAudioTracks();
  if (!track) throw new Error('no audio track');
  return { track, stream: destination.stream };
}

export function nearestColour(r: number, g: number, b: number): Colour {
  let best: Colour = 'black';
  let bestDistance = Infinity;
  for (const name of Object.keys(colours) as Colour[]) {
    const [cr, cg, cb] = colours[name];
    const distance = (r - cr) ** 2 + (g - cg) ** 2 + (b - cb) ** 2;
    if (distance < bestDistance) [best, bestDistance] = [name, distance];
  }
  return best;
}
