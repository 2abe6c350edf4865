// Starts Firefox and drives its pages by WebDriver BiDi (https://w3c.github.io/webdriver-bidi/): the commands that a
// peer needs.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { WebSocket } from 'ws';
import type { PageEvent } from '../page/driver-api.js';
import { findFirefox } from './needs.js';

const START_TIMEOUT_MS = 30_000;
const WAIT_TIMEOUT_MS = 30_000;
const POLL_MS = 50;

/** Lets pages autoplay sound and use this machine's addresses, and keeps the browser from calling home. */
const PREFERENCES: Readonly<Record<string, unknown>> = {
  'media.autoplay.default': 0,
  'media.autoplay.blocking_policy': 0,
  'media.peerconnection.ice.loopback': true,
  'media.peerconnection.ice.obfuscate_host_addresses': false,
  // A virtual sound card, for machines without one.
  'media.cubeb.force_mock_context': true,
  'app.update.enabled': false,
  'browser.shell.checkDefaultBrowser': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'ui.prefersReducedMotion': 1,
  'services.settings.server': 'data:,#remote-settings-dummy/v1',
  'toolkit.telemetry.enabled': false,
};

/**
 * Returns the settings of a node that Firefox can reach directly. Firefox leaves out the loopback interface and pairs
 * no other address with it. A machine with no other interface uses loopback.
 */
export function nodeForFirefox(): Record<string, string> {
  const own = Object.values(networkInterfaces()).flat();
  const address = own.find((one) => one?.internal === false && one.family === 'IPv4')?.address ?? '127.0.0.1';
  return { JF_WEBRTC_TURN_IP: address, JF_WEBRTC_TURN_LISTEN_IP: address };
}

interface Message {
  id?: number;
  type: 'success' | 'error' | 'event';
  // oxlint-disable-next-line typescript/no-explicit-any -- JSON of another program
  result?: any;
  message?: string;
  method?: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- JSON of another program
  params?: any;
}

/** Options for starting a browser. */
export interface FirefoxOptions {
  /** Returns the command that runs a program where the browser should run; by default on this machine. */
  commandOf?: (program: string) => readonly string[];
  preferences?: Readonly<Record<string, unknown>>;
  /** Accepts any certificate, for pages and for TURN over TLS. */
  trusting?: boolean;
}

/** Receives what a page reports. */
export interface PageListener {
  take(event: PageEvent): void;
  takeConsole(line: string): void;
}

const DEAF: PageListener = { take: () => undefined, takeConsole: () => undefined };

interface PageCall {
  name: string;
  call: number;
  argument: unknown;
}

export class Firefox {
  readonly #program: ChildProcess;
  readonly #socket: WebSocket;
  readonly #profile: string;
  readonly #calls = new Map<number, { resolve: (result: Message['result']) => void; reject: (error: Error) => void }>();
  readonly #listeners = new Map<string, PageListener>();
  /** Functions that pages may call, by name and browsing context. */
  readonly #functions = new Map<string, (argument: unknown) => unknown>();
  #lastCall = 0;

  private constructor(program: ChildProcess, socket: WebSocket, profile: string) {
    this.#program = program;
    this.#socket = socket;
    this.#profile = profile;
    socket.on('message', (data: Buffer) => this.#receive(JSON.parse(data.toString()) as Message));
  }

  /** Starts a headless browser with a new profile. */
  static async start({ commandOf, preferences = {}, trusting = false }: FirefoxOptions = {}): Promise<Firefox> {
    const path = findFirefox();
    if (path === undefined) throw new Error('no Firefox on this machine: sudo apt-get install firefox-esr');
    const profile = mkdtempSync(join(tmpdir(), 'bloom-firefox-'));
    const lines = Object.entries({ ...PREFERENCES, ...preferences }).map(
      ([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});`,
    );
    writeFileSync(join(profile, 'user.js'), lines.join('\n'));
    const flags = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port=0'];
    const [command = path, ...rest] = commandOf?.(path) ?? [path];
    const program = spawn(command, [...rest, ...flags], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, HOME: profile, MOZ_HEADLESS: '1' },
    });
    try {
      const { host, port } = new URL(await addressOf(program));
      const path = commandOf === undefined ? undefined : await relay(commandOf, Number(port), profile);
      const socket = new WebSocket(path === undefined ? `ws://${host}/session` : `ws+unix://${path}:/session`, {
        headers: { host },
      });
      await once(socket, 'open');
      const browser = new Firefox(program, socket, profile);
      await browser.#call('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: trusting } } });
      await browser.#call('session.subscribe', { events: ['script.message', 'log.entryAdded'] });
      return browser;
    } catch (error) {
      program.kill('SIGKILL');
      rmSync(profile, { recursive: true, force: true });
      throw error;
    }
  }

  get pid(): number | undefined {
    return this.#program.pid;
  }

  /** Opens a page whose reports go to `listener`. The result has the page methods that Firefox tests use. */
  async open(url: string, listener: PageListener = DEAF): Promise<Page> {
    const { context } = await this.#call('browsingContext.create', { type: 'window' });
    this.#listeners.set(context, listener);
    await this.#call('script.addPreloadScript', {
      functionDeclaration:
        '(report) => { window.reportToTest = (event) => Promise.resolve(report(JSON.stringify(event))); }',
      arguments: [{ type: 'channel', value: { channel: 'report' } }],
      contexts: [context],
    });
    const goto = (to: string): Promise<unknown> =>
      this.#call('browsingContext.navigate', { context, url: to, wait: 'complete' });
    await goto(url);

    const evaluate = (run: unknown, argument: unknown): Promise<unknown> =>
      this.#evaluate(context, String(run), argument);
    return {
      evaluate,
      goto,
      exposeFunction: (name: string, run: (argument: unknown) => unknown) => this.#expose(context, name, run),
      waitForTimeout: (ms: number) => delay(ms),
      waitForFunction: async (run: unknown, argument: unknown, { timeout = WAIT_TIMEOUT_MS } = {}) => {
        const deadline = Date.now() + timeout;
        while (!(await evaluate(run, argument))) {
          if (Date.now() > deadline) throw new Error(`not true within ${timeout} ms: ${String(run)}`);
          await delay(POLL_MS);
        }
      },
      setViewportSize: (viewport: { width: number; height: number }) =>
        this.#call('browsingContext.setViewport', { context, viewport }),
      close: async () => {
        if (this.#listeners.delete(context)) await this.#call('browsingContext.close', { context });
      },
    } as unknown as Page;
  }

  async close(): Promise<void> {
    const ended = once(this.#program, 'exit');
    this.#socket.terminate();
    this.#program.kill('SIGKILL');
    await ended;
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 10 });
  }

  /** Lets pages opened from now on call a function of the test. */
  async #expose(context: string, name: string, run: (argument: unknown) => unknown): Promise<void> {
    this.#functions.set(`${context} ${name}`, run);
    await this.#call('script.addPreloadScript', {
      functionDeclaration: `(call) => {
        const calls = [];
        window.${name} = (argument) =>
          new Promise((resolve, reject) => {
            call(JSON.stringify({ name: '${name}', call: calls.push({ resolve, reject }) - 1, argument }));
          });
        window.${name}.answer = ({ call, value, error }) =>
          error === undefined ? calls[call].resolve(value) : calls[call].reject(new Error(error));
      }`,
      arguments: [{ type: 'channel', value: { channel: 'call' } }],
      contexts: [context],
    });
  }

  async #perform(context: string, { name, call, argument }: PageCall): Promise<void> {
    const run = this.#functions.get(`${context} ${name}`);
    const answer = await (async () => ({ call, value: await run?.(argument) }))().catch((error: unknown) => ({
      call,
      error: String(error),
    }));
    await this.#evaluate(context, `(answer) => window.${name}.answer(answer)`, answer);
  }

  async #evaluate(context: string, run: string, argument: unknown): Promise<unknown> {
    const { result, exceptionDetails } = await this.#call('script.callFunction', {
      functionDeclaration: `async (text) => JSON.stringify(await (${run})(JSON.parse(text)))`,
      arguments: [{ type: 'string', value: JSON.stringify(argument ?? null) }],
      target: { context },
      awaitPromise: true,
    });
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.text);
    return result.type === 'undefined' ? undefined : JSON.parse(result.value);
  }

  #call(method: string, params: unknown): Promise<Message['result']> {
    const id = ++this.#lastCall;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }

  #receive({ id, type, result, message, method, params }: Message): void {
    if (id !== undefined) {
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      if (type === 'success') call?.resolve(result);
      else call?.reject(new Error(message));
      return;
    }
    const listener = this.#listeners.get(params?.source?.context);
    if (method === 'script.message') {
      const value: unknown = JSON.parse(params.data.value);
      if (params.channel === 'call') void this.#perform(params.source.context, value as PageCall);
      else listener?.take(value as PageEvent);
    }
    if (method === 'log.entryAdded') {
      const uncaught = params.type === 'javascript' ? 'uncaught ' : '';
      listener?.takeConsole(`${params.level}: ${uncaught}${params.text}`);
    }
  }
}

/** Returns the address that the program prints when it is ready. */
async function addressOf(program: ChildProcess): Promise<string> {
  let said = '';
  const timeout = AbortSignal.timeout(START_TIMEOUT_MS);
  while (program.stderr !== null) {
    const [chunk] = (await once(program.stderr, 'data', { signal: timeout })) as [Buffer];
    said += chunk.toString();
    const address = /WebDriver BiDi listening on (ws:\/\/\S+)/.exec(said)?.[1];
    if (address !== undefined) return address;
  }
  throw new Error('Firefox was started without a pipe');
}

/** Firefox listens only on its own host's loopback interface. Returns the path of a Unix socket that leads there. */
async function relay(
  commandOf: NonNullable<FirefoxOptions['commandOf']>,
  port: number,
  folder: string,
): Promise<string> {
  const path = join(folder, 'bidi');
  const script = `const net = require('node:net');
    net.createServer((from) => {
      const to = net.connect(${port}, '127.0.0.1');
      for (const end of [from, to]) end.on('error', () => process.exit());
      from.pipe(to).pipe(from);
      from.on('close', () => process.exit());
    }).listen('${path}', () => console.log('ready'));`;
  const [command = '', ...rest] = commandOf(process.execPath);
  const program = spawn(command, [...rest, '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(program.stdout, 'data', { signal: AbortSignal.timeout(START_TIMEOUT_MS) });
  return path;
}
