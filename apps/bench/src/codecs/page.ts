import { build } from 'esbuild';

/**
 * The page of the benchmark. The picture depends on its number only, which it carries in its first row, so that a
 * viewer can compare what it sees with the original.
 */
const PAGE = `
  import { RoomClient } from '@bloom/client';

  const [WIDTH, HEIGHT, FPS, BITS, ROW] = [640, 360, 15, 16, 16];
  const surface = () => new OffscreenCanvas(WIDTH, HEIGHT).getContext('2d', { willReadFrequently: true });

  // Blurred noise: neither flat nor impossible to encode.
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const backdrop = new OffscreenCanvas(WIDTH * 2, HEIGHT);
  const paint = backdrop.getContext('2d');
  for (let i = 0; i < 1500; i += 1) {
    paint.fillStyle = 'hsl(' + random() * 360 + ' 50% ' + (25 + random() * 50) + '%)';
    paint.beginPath();
    paint.arc(random() * WIDTH * 2, random() * HEIGHT, 4 + random() * 30, 0, 7);
    paint.fill();
  }

  function draw(context, number) {
    const shift = (number * 3) % WIDTH;
    context.drawImage(backdrop, -shift, 0);
    context.fillStyle = 'tan';
    const [x, y] = [WIDTH / 2 + 120 * Math.sin(number / 11), HEIGHT / 2 + 40 * Math.cos(number / 7)];
    context.beginPath();
    context.ellipse(x, y, 90, 120, Math.sin(number / 13) / 4, 0, 7);
    context.fill();
    context.fillStyle = 'black';
    for (const side of [-35, 35]) context.fillRect(x + side - 8, y - 30, 16, number % 40 < 3 ? 2 : 10);
    context.fillRect(x - 30, y + 40, 60, 4 + 12 * Math.abs(Math.sin(number / 2)));
    for (let bit = 0; bit < BITS; bit += 1) {
      context.fillStyle = (number >> bit) & 1 ? 'white' : 'black';
      context.fillRect((bit * WIDTH) / BITS, 0, WIDTH / BITS, ROW);
    }
  }

  /** Returns the picture as I420: conversions by the browser would add errors of their own. */
  function planes(context) {
    const { data } = context.getImageData(0, 0, WIDTH, HEIGHT);
    const picture = new Uint8Array((WIDTH * HEIGHT * 3) / 2);
    let [luma, u, v] = [0, WIDTH * HEIGHT, (WIDTH * HEIGHT * 5) / 4];
    for (let i = 0; i < data.length; i += 4) {
      const [r, g, b] = [data[i], data[i + 1], data[i + 2]];
      const column = luma % WIDTH;
      if (column % 2 === 0 && ((luma - column) / WIDTH) % 2 === 0) {
        picture[u++] = 128.5 - 0.148 * r - 0.291 * g + 0.439 * b;
        picture[v++] = 128.5 + 0.439 * r - 0.368 * g - 0.071 * b;
      }
      picture[luma++] = 16.5 + 0.257 * r + 0.504 * g + 0.098 * b;
    }
    return picture;
  }

  /** Returns the decoded luma. The encoder may have made the picture smaller, which is scaled up again. */
  async function seenLuma(video) {
    const frame = new VideoFrame(video);
    const { width, height } = frame.visibleRect;
    if (frame.format !== 'I420' && frame.format !== 'NV12') throw new Error('a picture in ' + frame.format);
    const data = new Uint8Array(frame.allocationSize());
    const [{ offset, stride }] = await frame.copyTo(data);
    frame.close();
    const luma = new Uint8Array(WIDTH * HEIGHT);
    for (let y = 0, to = 0; y < HEIGHT; y += 1) {
      const row = offset + Math.floor((y * height) / HEIGHT) * stride;
      for (let x = 0; x < WIDTH; x += 1) luma[to++] = data[row + Math.floor((x * width) / WIDTH)];
    }
    return { luma, width };
  }

  function numberIn(luma) {
    let number = 0;
    for (let bit = 0; bit < BITS; bit += 1) {
      if (luma[(ROW / 2) * WIDTH + Math.floor(((bit + 0.5) * WIDTH) / BITS)] > 128) number |= 1 << bit;
    }
    return number;
  }

  /** Mean square error of the luma of a picture. */
  function errorOf(seen, original) {
    let sum = 0;
    const from = ROW * 2 * WIDTH;
    for (let i = from; i < seen.length; i += 1) sum += (seen[i] - original[i]) ** 2;
    return sum / (seen.length - from);
  }

  const client = new RoomClient();

  window.publish = async (seat, codec, maxBitrateBps) => {
    const track = new MediaStreamTrackGenerator({ kind: 'video' });
    const writer = track.writable.getWriter();
    const context = surface();
    let number = 0;
    setInterval(() => {
      draw(context, number++ % 2 ** BITS);
      const timestamp = performance.now() * 1000;
      const layout = { format: 'I420', codedWidth: WIDTH, codedHeight: HEIGHT, timestamp };
      void writer.write(new VideoFrame(planes(context), layout));
    }, 1000 / FPS);
    await client.connect(seat);
    await client.publish(track, { codec, simulcast: false, maxBitrateBps });
  };

  let video;
  window.watch = async (seat) => {
    const ready = new Promise((resolve) => client.on('trackReady', ({ media }) => resolve(media)));
    await client.connect(seat);
    video = Object.assign(document.createElement('video'), { muted: true, autoplay: true });
    video.srcObject = new MediaStream([await ready]);
    document.body.append(video);
    await new Promise((resolve) => video.requestVideoFrameCallback(resolve));
  };

  /** Compares pictures for some seconds. Returns the signal-to-noise ratio in dB, and bits per second. */
  window.compare = async (seconds) => {
    const original = surface();
    const bytes = async () => (await client.stats()).tracks[0].bytes;
    const [before, begun] = [await bytes(), performance.now()];
    const errors = [];
    let narrowest = WIDTH;
    while (performance.now() - begun < seconds * 1000) {
      await new Promise((resolve) => video.requestVideoFrameCallback(resolve));
      const { luma, width } = await seenLuma(video);
      narrowest = Math.min(narrowest, width);
      draw(original, numberIn(luma));
      errors.push(errorOf(luma, planes(original)));
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length;
    const bps = ((await bytes()) - before) * 8000 / (performance.now() - begun);
    const [{ codec }] = (await client.stats()).tracks;
    return { psnr: 10 * Math.log10(255 ** 2 / mean), bps, codec, width: narrowest };
  };

  /** Returns how often and how long the picture stood still for longer than the limit. */
  window.pauses = async (seconds, limitMs) => {
    const begun = performance.now();
    const lengths = [];
    let last = begun;
    while (performance.now() - begun < seconds * 1000) {
      await Promise.race([
        new Promise((resolve) => video.requestVideoFrameCallback(resolve)),
        new Promise((resolve) => setTimeout(resolve, 5000)),
      ]);
      const now = performance.now();
      if (now - last > limitMs) lengths.push(now - last);
      last = now;
    }
    return { count: lengths.length, totalMs: lengths.reduce((sum, ms) => sum + ms, 0) };
  };
`;

/** Returns the script of the page. */
export async function pageScript(): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: PAGE, resolveDir: process.cwd() },
    bundle: true,
    format: 'iife',
    write: false,
  });
  return outputFiles[0]?.text ?? '';
}
