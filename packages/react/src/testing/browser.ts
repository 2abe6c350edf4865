// A document for React and a real node behind it. Import it before react-dom, which looks for a document only once.
import { Window } from 'happy-dom';
import { WebSocket } from 'ws';

/** Names that the page finds in its browser. `fetch` is Node's, which reaches a real server. */
const NAMES = [
  'window',
  'document',
  'location',
  'history',
  'navigator',
  'sessionStorage',
  'localStorage',
  'addEventListener',
  'removeEventListener',
  'getComputedStyle',
  'HTMLElement',
  'HTMLIFrameElement',
  'HTMLInputElement',
  'HTMLMediaElement',
  'HTMLVideoElement',
  'FormData',
  'MediaStream',
  'ResizeObserver',
  'IntersectionObserver',
] as const;

// Sockets close a moment after their page.
Object.assign(globalThis, { WebSocket });

/** A browser in the globals until it is closed. */
export class TestBrowser {
  readonly #window: Window;
  readonly #before = new Map<string, PropertyDescriptor | undefined>();

  /** Shows the page at `url`. */
  constructor(url: string) {
    this.#window = new Window({ url });
    const members = this.#window as unknown as Record<string, unknown>;
    for (const name of NAMES) {
      const value = name === 'window' ? this.#window : members[name];
      this.put({ [name]: typeof value === 'function' && /^[a-z]/.test(name) ? value.bind(this.#window) : value });
    }
  }

  /** Adds values to the globals. */
  put(values: Readonly<Record<string, unknown>>): void {
    for (const [name, value] of Object.entries(values)) {
      if (!this.#before.has(name)) this.#before.set(name, Reflect.getOwnPropertyDescriptor(globalThis, name));
      Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
    }
  }

  async close(): Promise<void> {
    for (const [name, descriptor] of this.#before) {
      if (descriptor === undefined) Reflect.deleteProperty(globalThis, name);
      else Object.defineProperty(globalThis, name, descriptor);
    }
    await this.#window.happyDOM.close();
  }
}
