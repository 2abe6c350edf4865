// Opens the dashboard in Chromium as a person would.
import type { BrowserContextOptions, Page } from 'playwright-core';
import type { Stage } from '../harness/stage.js';

/** Flags that grant a fake camera and microphone without asking, and a screen to share. */
export const dashboardFlags = ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'];

/** Every view by its address; the room `kitchen` must exist. */
export const views = {
  rooms: '#/rooms',
  room: '#/rooms/kitchen',
  people: '#/people',
  components: '#/components',
  events: '#/events',
  cluster: '#/cluster',
  logs: '#/logs',
  call: '#/call',
  watch: '#/watch',
  stream: '#watch=kitchen',
} as const;

export class DashboardPages {
  readonly #stage: Stage;
  readonly #pages: Page[] = [];
  readonly #faults: string[] = [];

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async open(hash: string, options: BrowserContextOptions = {}, url = this.#stage.node.url): Promise<Page> {
    // Colours must not be checked half-way between light and dark.
    const fixed = { viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' } as const;
    const context = await this.#stage.browser.newContext({ ...fixed, ...options });
    const page = await context.newPage();
    this.#pages.push(page);
    page.setDefaultTimeout(30_000);
    page.on('pageerror', (error) => this.#faults.push(`${String(error)} ${error.stack ?? ''}`));
    page.on('console', (message) => {
      if (/content security policy/i.test(message.text())) this.#faults.push(message.text());
    });
    await page.goto(`${url}/${hash}`);
    return page;
  }

  /** Opens the call in a room and joins with a generated picture. */
  async enter(room: string, name: string, url?: string): Promise<Page> {
    const page = await this.open(`#room=${room}`, {}, url);
    await page.getByLabel('Your name').fill(name);
    await page.getByLabel('Generated').check();
    await page.getByRole('button', { name: 'Join' }).click();
    await page.getByRole('status').filter({ hasText: 'Connected' }).waitFor();
    return page;
  }

  /** Closes all pages. Returns their errors. */
  async close(): Promise<string[]> {
    await Promise.all(this.#pages.splice(0).map((page) => page.context().close()));
    return this.#faults.splice(0);
  }
}

/** Navigates within the page, as its links do. */
export async function visit(page: Page, hash: string): Promise<void> {
  await page.evaluate((wanted) => {
    location.hash = wanted;
  }, hash);
  await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
}

/** Waits until the picture with this label moves. */
export async function moves(page: Page, label: string): Promise<void> {
  await page
    .getByLabel(label, { exact: true })
    .evaluate((element) => new Promise((shown) => (element as HTMLVideoElement).requestVideoFrameCallback(shown)));
}

/** More than the number of focusable elements in any view. */
const MAX_PRESSES = 100;

/** Presses Tab until the focused element's label or text begins with this. */
export async function tabTo(page: Page, wanted: string): Promise<void> {
  const seen: string[] = [];
  for (let presses = 0; presses < MAX_PRESSES; presses += 1) {
    const name = await page.evaluate(() => {
      const element = document.activeElement as HTMLInputElement | null;
      const label = element?.labels?.[0]?.querySelector('span')?.textContent ?? element?.labels?.[0]?.textContent;
      return (element?.getAttribute('aria-label') ?? label ?? element?.textContent ?? '').trim();
    });
    if (name.startsWith(wanted)) return;
    seen.push(name.slice(0, 40));
    await page.keyboard.press('Tab');
  }
  throw new Error(`the Tab key does not lead to ${wanted}, but to ${[...new Set(seen)].join(' | ')}`);
}

/** Presses a key on the element that Tab leads to. */
export async function press(page: Page, wanted: string, key = 'Enter'): Promise<void> {
  await tabTo(page, wanted);
  await page.keyboard.press(key);
}
