// A view of the dashboard as a person uses it: through its visible texts.
import { BloomClient } from '@bloom/server-sdk';
import { act, type ReactNode } from 'react';
import type { Root } from 'react-dom/client';
import { Live } from '../live/live.js';
import { SessionContext } from '../session.js';
import { TestBrowser } from '@bloom/react/testing';

const WAIT_MS = 10_000;
const LOOK_EVERY_MS = 10;

export class TestPage {
  readonly api: BloomClient;
  readonly base: string;
  readonly #root: Root;
  readonly #browser: TestBrowser;

  private constructor(
    readonly live: Live,
    { api, base }: { api: BloomClient; base: string },
    { root, browser }: { root: Root; browser: TestBrowser },
  ) {
    this.api = api;
    this.base = base;
    this.#root = root;
    this.#browser = browser;
  }

  /** Opens a page of the node at `url`, signed in. */
  static async open(url: string, { token = 'development', hash = '' } = {}): Promise<TestPage> {
    const base = `${url}/`;
    const browser = new TestBrowser(`${base}${hash}`);
    const { createRoot } = await import('react-dom/client');
    const main = document.createElement('div');
    document.body.append(main);
    const api = new BloomClient({ url: base, token });
    const live = new Live(api);
    const page = new TestPage(live, { api, base }, { root: createRoot(main), browser });
    live.open();
    return page;
  }

  /** Adds more browser features to the globals until the page is closed. */
  install(values: Readonly<Record<string, unknown>>): void {
    this.#browser.put(values);
  }

  async show(children: ReactNode): Promise<void> {
    const session = { api: this.api, live: this.live, base: this.base };
    this.#root.render(<SessionContext value={session}>{children}</SessionContext>);
    await this.until('the view is there', () => document.body.textContent !== '');
  }

  async close(): Promise<void> {
    // Effects are cleaned up in the browser in which they started.
    this.install({ IS_REACT_ACT_ENVIRONMENT: true });
    await act(async () => this.#root.unmount());
    this.live.close();
    await this.#browser.close();
  }

  /** The visible text, with single spaces. */
  get text(): string {
    return (document.body.textContent ?? '').replaceAll(/\s+/g, ' ');
  }

  /** Waits until the page shows this text. */
  async shows(text: string): Promise<void> {
    await this.until(`the page shows “${text}”`, () => this.text.includes(text));
  }

  async hides(text: string): Promise<void> {
    await this.until(`the page no longer shows “${text}”`, () => !this.text.includes(text));
  }

  /** Waits until the page has moved to this address. */
  async goes(hash: string): Promise<void> {
    await this.until(`the address is ${hash}`, () => location.hash === hash);
  }

  async until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    for (const end = Date.now() + WAIT_MS; Date.now() < end; ) {
      if (await isSo()) return;
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
    throw new Error(`timed out waiting until ${what}: ${this.text}`);
  }

  /** Returns the button, link or field with this name, otherwise the first whose name starts with it. */
  find<Wanted extends HTMLElement = HTMLElement>(name: string): Wanted {
    const found = this.#look(name);
    if (found === undefined)
      throw new Error(`nothing is called “${name}”: ${this.#controls().map(nameOf).join(' | ')}`);
    return found as Wanted;
  }

  /** Presses a button once it exists and is idle. */
  async click(name: string): Promise<void> {
    await this.until(`“${name}” can be pressed`, () => {
      const found = this.#look(name);
      return found !== undefined && found.getAttribute('aria-disabled') !== 'true';
    });
    this.find(name).click();
  }

  /** Writes into a field, or chooses from a list. */
  async fill(name: string, value: string): Promise<void> {
    await this.until(`there is “${name}”`, () => this.#look(name) !== undefined);
    const field = this.find<HTMLInputElement>(name);
    // React watches the property of the element itself.
    Reflect.getOwnPropertyDescriptor(Reflect.getPrototypeOf(field) as object, 'value')?.set?.call(field, value);
    for (const type of ['input', 'change']) field.dispatchEvent(new window.Event(type, { bubbles: true }));
  }

  #controls(): HTMLElement[] {
    return [...document.querySelectorAll<HTMLElement>('button, a, input, select')];
  }

  #look(name: string): HTMLElement | undefined {
    const all = this.#controls();
    return all.find((one) => nameOf(one) === name) ?? all.find((one) => nameOf(one).startsWith(name));
  }
}

function nameOf(element: HTMLElement): string {
  const [label] = (element as HTMLInputElement).labels ?? [];
  const text = label?.querySelector('span')?.textContent ?? label?.textContent;
  return (element.getAttribute('aria-label') ?? text ?? element.textContent ?? '').trim();
}
