// Parts shared by several views, in a separate document.
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { ReactNode } from 'react';
import type { Root } from 'react-dom/client';
import { TestBrowser } from '@bloom/react/testing';
import { bitrate, Chart, milliseconds, percent } from './chart.js';
import { Copy, Dialog, Failure } from './parts.js';
import { type Action, useAction } from './use-action.js';
import { type Polled, usePolled } from './use-polled.js';
import { VirtualTable } from './virtual-table.js';

let browser: TestBrowser;
let root: Root;
let act: (work: () => Promise<void> | void) => Promise<void>;

beforeEach(async () => {
  browser = new TestBrowser('http://node/');
  browser.put({ IS_REACT_ACT_ENVIRONMENT: true });
  const react = await import('react');
  act = (work) => react.act(async () => work());
  const { createRoot } = await import('react-dom/client');
  document.body.innerHTML = '<button id="outside">Outside</button><div id="root"></div>';
  root = createRoot(document.querySelector('#root') as HTMLElement);
});
afterEach(async () => {
  await act(() => root.unmount());
  jest.useRealTimers();
  await browser.close();
});

const show = (children: ReactNode): Promise<void> => act(() => root.render(children));
const text = (): string => document.querySelector('#root')?.textContent ?? '';
const button = (name: string): HTMLButtonElement =>
  [...document.querySelectorAll('button')].find(({ textContent }) =>
    textContent?.startsWith(name),
  ) as HTMLButtonElement;

describe('a polled question', () => {
  let polled: Polled<string>;
  let asked: string[];
  let answer: (key: string) => Promise<string>;
  function Asker({ about }: { readonly about: string }): null {
    polled = usePolled(
      () => {
        asked.push(about);
        return answer(about);
      },
      { key: about, pauseMs: 1_000 },
    );
    return null;
  }
  beforeEach(() => {
    jest.useFakeTimers();
    asked = [];
    answer = (key) => Promise.resolve(`${key} ${asked.length}`);
  });
  const pass = (ms: number): Promise<void> => act(() => jest.advanceTimersByTimeAsync(ms));

  test('asks again a pause after each answer', async () => {
    await show(<Asker about="a" />);
    expect(polled.value).toBe('a 1');
    await pass(999);
    expect(asked).toHaveLength(1);
    await pass(1);
    expect(polled.value).toBe('a 2');
  });

  test('keeps the last answer when one fails, gives the reason, and continues', async () => {
    await show(<Asker about="a" />);
    answer = () => Promise.reject(new Error('broken'));
    await pass(1_000);
    expect(polled.value).toBe('a 1');
    expect(polled.problem?.message).toBe('broken');
    answer = () => Promise.resolve('well again');
    await pass(1_000);
    expect(polled.value).toBe('well again');
    expect(polled.problem).toBeNull();
  });

  test('forgets the answer to another question', async () => {
    await show(<Asker about="a" />);
    answer = () => new Promise(() => undefined);
    await show(<Asker about="b" />);
    expect(polled.value).toBeUndefined();
    expect(asked).toEqual(['a', 'b']);
  });

  test('pauses while the page is hidden', async () => {
    await show(<Asker about="a" />);
    Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true });
    await pass(5_000);
    expect(asked).toHaveLength(1);
    Object.defineProperty(document, 'visibilityState', { value: 'visible', configurable: true });
    await pass(1_000);
    expect(asked).toHaveLength(2);
  });

  test('ends with its component', async () => {
    await show(<Asker about="a" />);
    await show(null);
    await pass(5_000);
    expect(asked).toHaveLength(1);
  });
});

describe('the action behind a button', () => {
  let action: Action;
  function Doer() {
    action = useAction();
    return <Failure action={action} />;
  }

  test('runs once, however often the button is pressed while it runs', async () => {
    await show(<Doer />);
    let done = (): void => undefined;
    let count = 0;
    const work = (): Promise<void> => {
      count += 1;
      return new Promise((resolve) => (done = resolve));
    };
    let results: Promise<boolean[]> | undefined;
    await act(() => void (results = Promise.all([action.run(work), action.run(work)])));
    expect(action.busy).toBe(true);
    await act(() => done());
    expect(await results).toEqual([true, false]);
    expect(count).toBe(1);
    expect(action.busy).toBe(false);
  });

  test('shows why it failed until dismissed or tried again', async () => {
    await show(<Doer />);
    const fail = (): Promise<never> => Promise.reject(new Error('no disk'));
    await act(async () => void (await action.run(fail)));
    expect(document.querySelector('[role="alert"]')?.textContent).toContain('That failed. no disk');
    await act(() => button('Dismiss').click());
    expect(text()).toBe('');
    await act(async () => void (await action.run(fail)));
    await act(async () => void (await action.run(() => Promise.resolve())));
    expect(text()).toBe('');
  });
});

describe('a dialog', () => {
  test('focuses its first field, and returns the focus', async () => {
    document.querySelector<HTMLElement>('#outside')?.focus();
    await show(
      <Dialog title="New room" onClose={() => undefined}>
        <form>
          <input id="name" />
        </form>
      </Dialog>,
    );
    expect(document.activeElement?.id).toBe('name');
    await show(null);
    expect(document.activeElement?.id).toBe('outside');
  });

  test('closes by its button and by the browser, which reports Escape', async () => {
    let closed = 0;
    await show(
      <Dialog title="New room" onClose={() => (closed += 1)}>
        <p>Content</p>
      </Dialog>,
    );
    await act(() => button('Close').click());
    expect(closed).toBe(1);
    await act(() => void document.querySelector('dialog')?.dispatchEvent(new window.Event('close')));
    expect(closed).toBe(2);
  });
});

describe('a copyable value', () => {
  test('copies the value to the clipboard and says so', async () => {
    const written: string[] = [];
    browser.put({ navigator: { clipboard: { writeText: async (value: string) => void written.push(value) } } });
    await show(<Copy label="Token" value="abc" />);
    await act(() => button('Copy').click());
    expect(written).toEqual(['abc']);
    expect(document.querySelector('[role="status"]')?.textContent).toBe('Copied');
  });

  test('says nothing if a page over plain HTTP has no clipboard', async () => {
    browser.put({ navigator: {} });
    await show(<Copy label="Token" value="abc" />);
    await act(() => button('Copy').click());
    expect(document.querySelector('[role="status"]')?.textContent).toBe('');
  });
});

describe('a virtual table', () => {
  const rows = Array.from({ length: 1_000 }, (_, i) => `row ${i}`);
  const table = (all: readonly string[], follow = false) => (
    <VirtualTable
      label="Rows"
      rows={all}
      columns={[{ title: 'Name', width: '1fr', cell: (row) => <a href={`#${row}`}>{row}</a> }]}
      keyOf={(row) => row}
      follow={follow}
    />
  );
  const shown = (): string[] => [...document.querySelectorAll('[role="cell"]')].map(({ textContent }) => textContent);
  const box = (): HTMLElement => document.querySelector('[role="table"]') as HTMLElement;
  const scroll = (top: number): Promise<void> =>
    act(() => {
      box().scrollTop = top;
      box().dispatchEvent(new window.Event('scroll'));
    });

  test('keeps only the rows in view in the page, and announces the total', async () => {
    await show(table(rows));
    expect(shown().length).toBeLessThan(40);
    expect(shown()[0]).toBe('row 0');
    expect(box().getAttribute('aria-rowcount')).toBe('1001');
  });

  test('shows the rows at the scroll position, with their indices', async () => {
    await show(table(rows));
    await scroll(44 * 500);
    expect(shown()).toContain('row 500');
    expect(shown()).not.toContain('row 0');
    const row = [...document.querySelectorAll('[role="row"]')].find(({ textContent }) => textContent === 'row 500');
    expect(row?.getAttribute('aria-rowindex')).toBe('502');
  });

  test('keeps the focused row wherever it is scrolled', async () => {
    await show(table(rows));
    await act(() => document.querySelector<HTMLElement>('[role="cell"] a')?.focus());
    await scroll(44 * 500);
    expect(shown()).toContain('row 0');
    expect(document.activeElement?.textContent).toBe('row 0');
  });
});

describe('a chart', () => {
  test('shows its newest value as text, and none before the first', async () => {
    const chart = (values: readonly number[]) => (
      <Chart label="Sends" values={values} length={60} text={bitrate} least={1e5} />
    );
    await show(chart([]));
    expect(text()).toBe('Sends –');
    await show(chart([1_000, 2_500_000]));
    expect(text()).toBe('Sends 2.5 Mbit/s');
    expect(document.querySelector('polyline')?.getAttribute('points')?.split(' ')).toHaveLength(2);
  });

  test.each([
    [bitrate(999_000), '999 kbit/s'],
    [percent(0), '0 %'],
    [percent(0.004), '0.4 %'],
    [percent(0.25), '25 %'],
    [milliseconds(3.14), '3.1 ms'],
    [milliseconds(120.4), '120 ms'],
  ])('formats %s as %s', (written, expected) => {
    expect(written).toBe(expected);
  });
});
