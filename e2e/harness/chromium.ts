// Finds and starts the browser. Without one the browser tests are skipped, and say so.
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe } from '@jest/globals';
import { type Browser, chromium } from 'playwright-core';

const programs = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** `BLOOM_CHROMIUM` (a path) first, then the usual names on the PATH. */
export function findChromium(): string | undefined {
  const folders = ['/usr/bin', ...(process.env['PATH'] ?? '').split(delimiter)];
  const candidates = programs.flatMap((name) => folders.map((folder) => join(folder, name)));
  return [process.env['BLOOM_CHROMIUM'] ?? '', ...candidates].find((path) => path !== '' && executable(path));
}

let warned = false;

/** `describe`, or a loud `describe.skip` where there is no browser. */
export function describeInBrowser(title: string, body: () => void): void {
  if (findChromium()) return void describe(title, body);
  if (!warned) {
    console.warn(
      '*** No Chromium, so the browser tests are SKIPPED. Install it with `sudo apt-get install chromium`, ' +
        'or point BLOOM_CHROMIUM at one. ***',
    );
    warned = true;
  }
  describe.skip(title, body);
}

const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
/** Several pages of one browser play at once, and only one of them is in front. */
const everyPageAwake = [
  '--autoplay-policy=no-user-gesture-required',
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
];
export const fakeCamera = ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'];

/** A headless browser with a profile of its own, which goes away with it. */
export async function launchChromium(extraFlags: readonly string[] = []): Promise<Browser> {
  const executablePath = findChromium();
  if (!executablePath) throw new Error('no Chromium on this machine: sudo apt-get install chromium');
  return chromium.launch({ executablePath, headless: true, args: [...quiet, ...everyPageAwake, ...extraFlags] });
}
