// The set-up that a file's scenarios share: one node, one browser, reused pages.
import { afterAll, afterEach, beforeAll, expect, jest } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import type { PageEvent } from '../page/driver-api.js';
import { Api, type NewPeer, type RoomOptions } from './api.js';
import { type BloomNode, type NodeOptions, startNode } from './bloom-node.js';
import { launchChromium } from './chromium.js';
import { Firefox, nodeForFirefox } from './firefox.js';
import { printMeasurements } from './measurements.js';
import { describeWith, type Need } from './needs.js';
import { type PageName, type PageServer, type Sdk, servePages } from './pages.js';
import { Peer } from './peer.js';

export interface StageOptions {
  /** Needs besides a browser. */
  readonly needs?: readonly Need[];
  /** The node under test, or how to start it. */
  readonly node?: NodeOptions | (() => Promise<BloomNode>);
  readonly browserFlags?: readonly string[];
  /** Uses the whole Chromium, which asks for permission to use devices. */
  readonly wholeBrowser?: boolean;
  readonly sdk?: Sdk;
  /** Address that the pages are served from, and a port if not any; loopback by default. */
  readonly pagesAt?: string;
  /** Runs the pages of `Stage.page` and `Stage.newPage` in Firefox; all others stay in Chromium. */
  readonly firefox?: boolean;
}

export class Stage {
  readonly #options: StageOptions;
  #node: BloomNode | undefined;
  #browser: Browser | undefined;
  #firefox: Firefox | undefined;
  readonly #firefoxPages: Page[] = [];
  #pages: PageServer | undefined;
  readonly #idle: Page[] = [];
  readonly #owner = new WeakMap<Page, Peer>();
  readonly #onStage = new Set<Peer>();
  readonly #rooms = new Set<string>();
  /** Uncaught errors of pages without a peer. */
  #errors: string[] = [];

  constructor(options: StageOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    const {
      firefox = false,
      node = firefox ? { env: nodeForFirefox() } : {},
      browserFlags,
      wholeBrowser,
      pagesAt,
    } = this.#options;
    [this.#node, this.#browser, this.#pages] = await Promise.all([
      typeof node === 'function' ? node() : startNode(node),
      launchChromium(browserFlags, wholeBrowser),
      servePages(pagesAt),
    ]);
    if (firefox) this.#firefox = await Firefox.start();
  }

  async close(): Promise<void> {
    await this.#browser?.close();
    await this.#firefox?.close();
    await this.#pages?.close();
    await this.#node?.stop();
  }

  get node(): BloomNode {
    if (!this.#node) throw new Error('the stage is not open');
    return this.#node;
  }

  get browser(): Browser {
    if (!this.#browser) throw new Error('the stage is not open');
    return this.#browser;
  }

  urlOf(page: PageName): string {
    return this.#pages?.urlOf(page) ?? '';
  }

  get api(): Api {
    return new Api(this.node.url);
  }

  /** Opens an empty page whose errors fail the test; in Chromium with a new profile. */
  async newPage(): Promise<Page> {
    if (this.#firefox !== undefined) {
      // Firefox reports a lost connection the same way, but without an error name.
      const takeConsole = (line: string): void => {
        if (/uncaught \w*(Error|Exception)\b/.test(line)) this.#errors.push(line);
      };
      const opened = await this.#firefox.open('about:blank', { take: () => undefined, takeConsole });
      this.#firefoxPages.push(opened);
      return opened;
    }
    const page = await (await this.browser.newContext()).newPage();
    page.on('pageerror', (error) => this.#errors.push(`${String(error)} ${error.stack ?? ''}`));
    return page;
  }

  /** Opens a page without a driver. */
  async page(name: PageName): Promise<Page> {
    const page = await this.newPage();
    await load(page, this.urlOf(name));
    return page;
  }

  async room(options: RoomOptions = {}): Promise<string> {
    const id = await this.api.createRoom(options);
    this.#rooms.add(id);
    return id;
  }

  /** Adds a peer to the room over HTTP and opens a page for it; the page has not connected yet. */
  async peer(roomId: string, name: string, options: { enableSimulcast?: boolean } = {}): Promise<Peer> {
    return this.seat(await this.api.addPeer(roomId, options), name);
  }

  /** Opens a page for an existing peer, or for an invalid token. */
  async seat({ id, token }: NewPeer, name: string, sdk: Sdk = this.#options.sdk ?? 'jellyfish'): Promise<Peer> {
    const page = this.#idle.pop() ?? (await this.#newReportingPage());
    const peer = new Peer(name, { id, token }, { host: this.node.host, page });
    await load(page, this.urlOf(sdk));
    this.#owner.set(page, peer);
    this.#onStage.add(peer);
    return peer;
  }

  /** Creates peers in a new room, which join one after another. */
  async call<N extends string>(
    names: readonly N[],
    room: RoomOptions = {},
  ): Promise<Record<N, Peer> & { room: string }> {
    const roomId = await this.room(room);
    const peers = await Promise.all(names.map((name) => this.peer(roomId, name)));
    for (const peer of peers) await peer.join();
    return { ...(Object.fromEntries(peers.map((p) => [p.name, p])) as Record<N, Peer>), room: roomId };
  }

  async #newReportingPage(): Promise<Page> {
    const context = await this.browser.newContext();
    const page = await context.newPage();
    await page.exposeBinding('reportToTest', ({ page: from }, event: PageEvent) => this.#owner.get(from)?.take(event));
    page.on('console', (message) => this.#owner.get(page)?.takeConsole(`${message.type()}: ${message.text()}`));
    page.on('pageerror', (error) =>
      this.#owner.get(page)?.takeConsole(`error: uncaught ${error.stack ?? error.message}`),
    );
    // The event above has no text for a promise rejected with a DOMException.
    await page.addInitScript(() => {
      addEventListener('unhandledrejection', (event) => {
        event.preventDefault();
        console.error(`uncaught ${String((event.reason as Error | undefined)?.stack ?? event.reason)}`);
      });
    });
    return page;
  }

  /** Cleans up after a test, except `keep`. Returns complaints about the server from the peers' consoles. */
  async clear(keep: ReadonlySet<Peer> = new Set()): Promise<string[]> {
    const leaving = [...this.#onStage].filter((peer) => !keep.has(peer));
    const complaints = leaving.flatMap((peer) => peer.complaints().map((line) => `${peer.name}: ${line}`));
    complaints.push(...this.#errors);
    this.#errors = [];
    for (const peer of leaving) {
      this.#onStage.delete(peer);
      this.#owner.delete(peer.page);
    }
    await Promise.all(
      leaving.map(async ({ page }) => {
        await page.goto('about:blank');
        this.#idle.push(page);
      }),
    );
    await Promise.all(this.#firefoxPages.splice(0).map((page) => page.close()));
    if (keep.size === 0) {
      await Promise.all([...this.#rooms].map((id) => this.api.request('DELETE', `/room/${id}`)));
      this.#rooms.clear();
    }
    return complaints;
  }
}

/**
 * Loads a page of the tests. Chromium ends every request when any interface of the machine changes, be it that of a
 * container; the page itself is not tested.
 */
async function load(page: Page, url: string): Promise<void> {
  try {
    await page.goto(url);
  } catch (error) {
    if (!String(error).includes('ERR_NETWORK_CHANGED')) throw error;
    await page.goto(url);
  }
}

/** A `describe` whose tests share a stage. After each test every page leaves, and no console may have a complaint. */
export function browserSuite(
  title: string,
  options: StageOptions,
  body: (stage: Stage, lasting: Set<Peer>) => void,
): void {
  const browsers: Need[] = options.firefox === true ? ['chromium', 'firefox'] : ['chromium'];
  describeWith([...browsers, ...(options.needs ?? [])], title, () => {
    const stage = new Stage(options);
    /** Peers that outlive the test that created them. */
    const lasting = new Set<Peer>();
    jest.setTimeout(60_000);
    // Several nodes and a browser take long to start on a busy machine.
    beforeAll(() => stage.open(), 180_000);
    afterEach(async () => {
      expect(await stage.clear(lasting)).toEqual([]);
    });
    afterAll(async () => {
      await stage.close();
      printMeasurements(title);
    });
    body(stage, lasting);
  });
}
