// Starts Chromium.
import { type Browser, chromium, type LaunchOptions } from 'playwright-core';
import { findChromium } from './needs.js';

const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
/** Several pages of a browser play at once, but only one is in the foreground. */
const everyPageAwake = [
  '--autoplay-policy=no-user-gesture-required',
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
];

export function launchOptions(
  extraFlags: readonly string[],
  whole?: boolean,
): LaunchOptions & { executablePath: string } {
  const executablePath = findChromium(whole);
  if (!executablePath) throw new Error('no Chromium on this machine: sudo apt-get install chromium');
  return { executablePath, headless: true, args: [...quiet, ...everyPageAwake, ...extraFlags] };
}

/** Starts a headless browser, the `whole` one or the shell, with a temporary profile. */
export async function launchChromium(extraFlags: readonly string[] = [], whole?: boolean): Promise<Browser> {
  return chromium.launch(launchOptions(extraFlags, whole));
}
