// Starts the browser.
import { readdirSync, readFileSync } from 'node:fs';
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
/** Several pages of one browser play at once, and only one of them is in front. */
const everyPageAwake = [
  '--autoplay-policy=no-user-gesture-required',
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
];

function launchOptions(extraFlags: readonly string[]): LaunchOptions & { executablePath: string } {
  const executablePath = findChromium();
  if (!executablePath) throw new Error('no Chromium on this machine: sudo apt-get install chromium');
  return { executablePath, headless: true, args: [...quiet, ...everyPageAwake, ...extraFlags] };
}

/** A headless browser with a profile of its own, which goes away with it. */
export async function launchChromium(extraFlags: readonly string[] = []): Promise<Browser> {
  return chromium.launch(launchOptions(extraFlags));
}

/** A browser whose processes a test may stop and continue. */
export interface Laptop {
  readonly browser: Browser;
  /** Sends a signal to all processes of the browser. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  close(): Promise<void>;
}

/** Starts a browser by itself; `wrap` changes the command that starts it, for example to run it on another host. */
export async function launchLaptop(wrap: (program: string) => string = (program) => program): Promise<Laptop> {
  const { executablePath, ...options } = launchOptions([]);
  const server = await chromium.launchServer({ ...options, executablePath: wrap(executablePath) });
  const root = server.process().pid ?? 0;
  return {
    browser: await chromium.connect(server.wsEndpoint()),
    signal: (name) => {
      for (const pid of descendants(root)) process.kill(pid, name);
    },
    close: () => server.close(),
  };
}

/** Returns a process and all that it has started, directly or not (proc(5)). */
function descendants(root: number): number[] {
  const parents = readdirSync('/proc').flatMap((name): [pid: number, parent: number][] => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      return [[Number(name), Number(stat.slice(stat.lastIndexOf(')') + 1).split(' ')[2])]];
    } catch {
      // It has ended meanwhile.
      return [];
    }
  });
  const found = [root];
  for (const pid of found) found.push(...parents.flatMap(([child, parent]) => (parent === pid ? [child] : [])));
  return found;
}
