// Plays a file in a browser's <video> or <audio>.
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { Browser } from 'playwright-core';

export interface Played {
  readonly error: string | null;
  /** Seconds. */
  readonly duration: number;
  readonly width: number;
  readonly height: number;
  /** Seconds that it has played by itself. */
  readonly advanced: number;
  /** RGB in the middle of each part of the picture, at each requested time. */
  readonly pixels: readonly (readonly number[])[];
}

export interface Look {
  /** Seconds. */
  readonly at: number;
  /** Fractions of the width and height. */
  readonly x: number;
  readonly y: number;
}

/** Loads the file, plays a little of it, then reads pixels. */
export async function playFile(browser: Browser, path: string, looks: readonly Look[] = []): Promise<Played> {
  const page = await browser.newPage();
  try {
    const type = { '.ogg': 'audio/ogg', '.webm': 'video/webm' }[extname(path)] ?? 'video/mp4';
    const source = `data:${type};base64,${readFileSync(path).toString('base64')}`;
    return await page.evaluate(
      async ({ source: url, looks: wanted }) => {
        const video = document.createElement('video');
        video.muted = true;
        const event = (name: string): Promise<void> =>
          new Promise((resolve, reject) => {
            video.addEventListener(name, () => resolve(), { once: true });
            video.addEventListener('error', () => reject(new Error(video.error?.message ?? 'unknown')), { once: true });
          });
        const report = (error: string | null, advanced = 0, pixels: number[][] = []): Played => {
          const { duration, videoWidth: width, videoHeight: height } = video;
          return { error, duration, width, height, advanced, pixels };
        };
        try {
          video.src = URL.createObjectURL(await (await fetch(url)).blob());
          await event('loadeddata');
          const from = video.currentTime;
          await video.play();
          await new Promise((resolve) => setTimeout(resolve, 700));
          video.pause();
          const advanced = video.currentTime - from;
          const pixels: number[][] = [];
          let shownAt = NaN;
          for (const { at, x, y } of wanted) {
            if (at !== shownAt) {
              // A picture is drawn when it is shown, which may be after the seek has completed.
              const shown = new Promise((resolve) => video.requestVideoFrameCallback(resolve));
              const seeked = event('seeked');
              video.currentTime = at;
              await Promise.all([seeked, shown]);
              shownAt = at;
            }
            const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight);
            const context = canvas.getContext('2d');
            context?.drawImage(video, 0, 0);
            const spot = context?.getImageData(Math.floor(x * canvas.width), Math.floor(y * canvas.height), 1, 1);
            pixels.push([...(spot?.data ?? [])].slice(0, 3));
          }
          return report(null, advanced, pixels);
        } catch (error) {
          return report(String(error));
        }
      },
      { source, looks },
    );
  } finally {
    await page.close();
  }
}
