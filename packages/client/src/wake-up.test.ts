import { afterEach, expect, test } from '@jest/globals';
import { watchForWakeUp } from './wake-up.js';

// Node 20 has none.
const navigator = Object.getOwnPropertyDescriptor(globalThis, 'navigator');

afterEach(() => {
  Reflect.deleteProperty(globalThis, 'document');
  Reflect.deleteProperty(globalThis, 'navigator');
  if (navigator !== undefined) Object.defineProperty(globalThis, 'navigator', navigator);
});

test('reports a page that becomes visible, but not one that is hidden, and nothing after stopping', () => {
  const page = Object.assign(new EventTarget(), { visibilityState: 'hidden' });
  Object.assign(globalThis, { document: page });
  Object.defineProperty(globalThis, 'navigator', { value: {}, configurable: true });
  let shown = 0;
  const stop = watchForWakeUp({ suspect: () => undefined, shown: () => (shown += 1) });
  const change = (state: string): void => {
    page.visibilityState = state;
    page.dispatchEvent(new Event('visibilitychange'));
  };
  change('hidden');
  expect(shown).toBe(0);
  change('visible');
  expect(shown).toBe(1);
  stop();
  change('visible');
  expect(shown).toBe(1);
});
