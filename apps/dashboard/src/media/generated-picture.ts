// A moving picture for users without a camera: drifting jellyfish, in a different colour for each user.
import { hueOf } from '@bloom/react/kit';

const WIDTH = 960;
const HEIGHT = 540;
const FPS = 15;

// Chromium can create a track from frames; other browsers capture the canvas.
declare global {
  interface Window {
    MediaStreamTrackGenerator?: new (init: {
      kind: 'video';
    }) => MediaStreamTrack & {
      readonly writable: WritableStream<VideoFrame>;
    };
  }
}

interface Jelly {
  readonly x: number;
  readonly size: number;
  readonly speed: number;
  readonly phase: number;
}

interface Moment {
  /** Seconds. */
  readonly t: number;
  readonly hue: number;
}

interface Picture {
  readonly name: string;
  readonly swarm: readonly Jelly[];
  readonly hue: number;
}

function drawJelly(g: CanvasRenderingContext2D, { x, size, speed, phase }: Jelly, { t, hue }: Moment): void {
  const pulse = Math.sin(t * 2 + phase);
  const y = HEIGHT + size - ((t * speed + phase * 97) % (HEIGHT + size * 4));
  const drift = Math.sin(t * 0.7 + phase) * size * 0.3;
  g.save();
  g.translate(x + drift, y);
  g.fillStyle = `hsl(${hue + phase * 12} 90% 72% / 75%)`;
  g.strokeStyle = `hsl(${hue + 50} 90% 78% / 60%)`;
  g.lineWidth = size * 0.06;
  g.beginPath();
  g.ellipse(0, 0, size * (1 + pulse * 0.08), size * (0.8 - pulse * 0.1), 0, Math.PI, 0);
  for (let i = 4; i >= 0; i -= 1) {
    const at = (i / 2 - 1) * size * 0.8;
    g.quadraticCurveTo(at + size * 0.2, size * 0.22, at, size * 0.05);
  }
  g.fill();
  for (let i = 0; i < 4; i += 1) {
    const at = ((i - 1.5) / 2) * size;
    const sway = Math.sin(t * 3 + phase + i) * size * 0.25;
    g.beginPath();
    g.moveTo(at, size * 0.1);
    g.bezierCurveTo(at + sway, size * 0.6, at - sway, size, at + sway * 0.5, size * 1.5);
    g.stroke();
  }
  g.restore();
}

function draw(g: CanvasRenderingContext2D, { name, swarm, hue }: Picture, t: number): void {
  const sea = g.createLinearGradient(0, 0, 0, HEIGHT);
  sea.addColorStop(0, `hsl(${hue} 60% 34%)`);
  sea.addColorStop(1, `hsl(${hue + 40} 70% 12%)`);
  g.fillStyle = sea;
  g.fillRect(0, 0, WIDTH, HEIGHT);
  for (const jelly of swarm) drawJelly(g, jelly, { t, hue });
  g.fillStyle = 'white';
  g.textAlign = 'center';
  g.textBaseline = 'middle';
  g.font = '600 132px system-ui, sans-serif';
  g.fillText([...name.trim()].slice(0, 1).join('').toUpperCase() || '?', WIDTH / 2, HEIGHT / 2 - 24);
  g.font = '500 40px ui-monospace, monospace';
  g.fillStyle = 'rgb(255 255 255 / 80%)';
  g.fillText(new Date().toLocaleTimeString('en-GB'), WIDTH / 2, HEIGHT / 2 + 84);
}

/** Returns a track whose timer ends when the track is stopped. `nameOf` returns the name whose letter it shows. */
export function generatedPicture(nameOf: () => string): MediaStreamTrack {
  const canvas = document.createElement('canvas');
  canvas.width = WIDTH;
  canvas.height = HEIGHT;
  const context = canvas.getContext('2d');
  if (!context) throw new Error('this browser has no 2d canvas');
  const swarm = Array.from({ length: 7 }, (_, i) => ({
    x: ((i + 0.5) * WIDTH) / 7,
    size: 34 + ((i * 29) % 40),
    speed: 26 + ((i * 17) % 30),
    phase: i * 2.1,
  }));

  let track: MediaStreamTrack;
  let push = (): void => {};
  if (window.MediaStreamTrackGenerator !== undefined) {
    const generator = new window.MediaStreamTrackGenerator({ kind: 'video' });
    const writer = generator.writable.getWriter();
    push = () => {
      writer.write(new VideoFrame(canvas, { timestamp: performance.now() * 1000 })).catch(() => {});
    };
    track = generator;
  } else {
    const [captured] = canvas.captureStream(FPS).getVideoTracks();
    if (captured === undefined) throw new Error('this browser cannot capture a canvas');
    track = captured;
  }

  const metronome = new Worker(new URL('./metronome.ts', import.meta.url), { type: 'module' });
  metronome.addEventListener('message', () => {
    if (track.readyState === 'ended') return metronome.terminate();
    const name = nameOf();
    draw(context, { name, swarm, hue: hueOf(name) }, performance.now() / 1000);
    push();
  });
  return track;
}
