// People who open the dashboard's call in Chromium and use it by its visible text.
import type { BrowserContext, Locator, Page } from 'playwright-core';
import type { Stage } from '../harness/stage.js';

interface Visit {
  readonly name: string;
  readonly source?: 'camera' | 'generated';
  readonly room?: string;
}

/** Flags of their browser. */
export const visitorFlags = ['--use-fake-device-for-media-stream'];

/** Waits until the element is on the page; the error shows what the page has instead. */
export async function shown(locator: Locator, options: Parameters<Locator['waitFor']>[0] = {}): Promise<void> {
  try {
    await locator.waitFor(options);
  } catch (error) {
    const text = await locator.page().evaluate(() => document.body.innerText.replaceAll(/\s+/g, ' '));
    throw new Error(`${String(error)}\nThe page says: ${text}`, { cause: error });
  }
}

/** Joins from the entrance. */
export async function join(page: Page, { name, source = 'generated', room }: Visit): Promise<void> {
  await page.getByLabel('Your name').fill(name);
  await page.getByLabel(source === 'generated' ? 'Generated' : 'Camera and microphone').check();
  if (room !== undefined) {
    await page.getByLabel('A new room').check();
    await page.getByLabel('Name of the new room').fill(room);
  }
  await page.getByRole('button', { name: 'Join' }).click();
}

export async function connected(page: Page): Promise<void> {
  await shown(page.getByRole('status').filter({ hasText: 'Connected' }));
}

/** Waits until this person's picture moves on this page. */
export async function sees(page: Page, name: string): Promise<void> {
  const picture = page.getByLabel(`Picture of ${name}`, { exact: true });
  await shown(picture);
  await picture.evaluate(
    (element) =>
      new Promise<void>((moved) => {
        const video = element as HTMLVideoElement;
        let frames = 0;
        const count = (): unknown => ((frames += 1) > 5 ? moved() : video.requestVideoFrameCallback(count));
        video.requestVideoFrameCallback(count);
      }),
  );
}

export class Visitors {
  readonly #stage: Stage;
  readonly #contexts: BrowserContext[] = [];
  readonly #faults: string[] = [];

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** Creates a person with a separate browser. */
  async visitor(options: { camera?: boolean } = {}): Promise<BrowserContext> {
    const context = await this.#stage.browser.newContext({
      viewport: { width: 1000, height: 700 },
      permissions: options.camera ? ['camera', 'microphone'] : [],
    });
    this.#contexts.push(context);
    return context;
  }

  async open(context: BrowserContext, url = `${this.#stage.node.url}/#/call`): Promise<Page> {
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    page.on('pageerror', (error) => this.#faults.push(`${String(error)} ${error.stack ?? ''}`));
    page.on('console', (message) => {
      if (message.text().includes('Received invalid control message')) this.#faults.push(message.text());
    });
    await page.goto(url);
    return page;
  }

  /** Closes all browsers. Returns the errors of their pages. */
  async close(): Promise<string[]> {
    await Promise.all(this.#contexts.splice(0).map((context) => context.close()));
    return this.#faults.splice(0);
  }
}
