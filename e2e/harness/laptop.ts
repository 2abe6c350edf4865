// A browser whose machine a test can put to sleep or move to another network.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';
import { launchOptions } from './chromium.js';
import { Firefox } from './firefox.js';
import { descendants } from './processes.js';

export type BrowserName = 'Chromium' | 'Firefox';

export interface Laptop {
  open(url: string): Promise<Page>;
  /** Sends a signal to all processes of the browser. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  close(): Promise<void>;
}

/** Where a browser runs, if not on this machine, and which pages it trusts like loopback ones. */
export interface LaptopPlace {
  /** Returns the command that runs a program there. */
  commandOf(program: string): readonly string[];
  /** Pages can create pictures only in a secure context. */
  trusted: URL;
  /** Accepts any certificate. */
  trusting?: boolean;
  /** Of Firefox. */
  preferences?: Readonly<Record<string, unknown>>;
}

/** Starts a browser with a new profile. */
export async function launchLaptop(browser: BrowserName, place?: LaptopPlace): Promise<Laptop> {
  return browser === 'Chromium' ? launchChromiumLaptop(place) : launchFirefoxLaptop(place);
}

async function launchChromiumLaptop(place: LaptopPlace | undefined): Promise<Laptop> {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-laptop-'));
  const { executablePath, ...options } = launchOptions(place?.trusting === true ? ['--ignore-certificate-errors'] : []);
  const server = await chromium.launchServer({
    ...options,
    executablePath: place === undefined ? executablePath : writeScript(folder, executablePath, place),
  });
  const laptop = await chromium.connect(server.wsEndpoint());
  return {
    open: async (url) => {
      const page = await laptop.newPage();
      await page.goto(url);
      return page;
    },
    signal: (name) => signalAll(server.process().pid, name),
    close: async () => {
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Writes a script that starts the program, because Playwright cannot put a command in front of it. */
function writeScript(folder: string, program: string, { commandOf, trusted }: LaptopPlace): string {
  const command = [...commandOf(program), `--unsafely-treat-insecure-origin-as-secure=${trusted.origin}`];
  const script = join(folder, 'chromium');
  writeFileSync(script, `#!/bin/sh\nexec ${command.map((word) => `'${word}'`).join(' ')} "$@"\n`);
  chmodSync(script, 0o755);
  return script;
}

async function launchFirefoxLaptop(place: LaptopPlace | undefined): Promise<Laptop> {
  const laptop = await Firefox.start(
    place && {
      commandOf: place.commandOf,
      preferences: { 'dom.securecontext.allowlist': place.trusted.hostname, ...place.preferences },
      trusting: place.trusting ?? false,
    },
  );
  return {
    open: (url) => laptop.open(url),
    signal: (name) => signalAll(laptop.pid, name),
    close: () => laptop.close(),
  };
}

function signalAll(root: number | undefined, name: NodeJS.Signals): void {
  if (root === undefined) return;
  for (const pid of [root, ...descendants(root)]) {
    try {
      process.kill(pid, name);
    } catch (error) {
      // Browsers constantly start and end processes.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}
