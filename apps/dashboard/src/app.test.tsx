import { startTestNode, type TestNode } from '@bloom/app-bloom/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { App } from './app.js';
import { TestPage } from './testing/page.js';

describe('the page without a known token', () => {
  let node: TestNode;
  let page: TestPage;
  beforeAll(async () => {
    node = await startTestNode({ JF_SERVER_API_TOKEN: 'a-token-ключ' });
  });
  afterAll(() => node.dispose());
  beforeEach(async () => {
    page = await TestPage.open(node.url, { token: 'a-token-ключ' });
    await page.show(<App base={page.base} />);
    await page.shows('Sign in to look after this server');
  });
  afterEach(() => page.close());

  test("accepts the server's token and shows its rooms", async () => {
    await page.fill('API token', 'a-token-ключ');
    await page.click('Sign in');
    await page.shows('No rooms yet');
    await page.shows('Live');
  });

  test('says where to find the right token when it receives a wrong one', async () => {
    await page.fill('API token', 'wrong');
    await page.click('Sign in');
    await page.shows('The API token is wrong');
    await page.shows('JF_SERVER_API_TOKEN');
  });

  test('forgets the token when the person signs out', async () => {
    await page.fill('API token', 'a-token-ключ');
    await page.click('Sign in');
    await page.shows('No rooms yet');
    await page.click('Sign out');
    await page.shows('Sign in to look after this server');
    expect(sessionStorage).toHaveLength(0);
    expect(localStorage).toHaveLength(0);
  });
});

describe('the page in the development profile', () => {
  let node: TestNode;
  let page: TestPage;
  beforeAll(async () => {
    node = await startTestNode({ JF_SERVER_API_TOKEN: 'development' });
  });
  afterAll(() => node.dispose());
  beforeEach(async () => {
    page = await TestPage.open(node.url);
  });
  afterEach(() => page.close());

  test('signs in automatically', async () => {
    await page.show(<App base={page.base} />);
    await page.shows('No rooms yet');
  });

  test('shows the view that its address names, and marks it in the navigation', async () => {
    await page.show(<App base={page.base} />);
    await page.shows('No rooms yet');
    for (const [view, text] of [
      ['Cluster', 'a single node'],
      ['People', 'Nobody is here'],
      ['Watch', 'There is nothing to watch'],
      ['Call', 'Open this page in two tabs'],
    ] as const) {
      await page.click(view);
      await page.shows(text);
      expect(document.querySelector('[aria-current="page"]')?.textContent).toBe(view);
      expect(document.title).toBe(`${view} – Bloom`);
    }
  });

  test('moves the focus to the heading of each view, for screen readers', async () => {
    await page.show(<App base={page.base} />);
    await page.click('Cluster');
    await page.shows('a single node');
    expect(document.activeElement?.tagName).toBe('H1');
    expect(document.activeElement?.textContent).toBe('Cluster');
  });

  test('returns to the sign-in form when the server rejects its token', async () => {
    await page.show(<App base={page.base} />);
    await page.shows('Live');
    const port = new URL(node.url).port;
    await node.dispose();
    node = await startTestNode({ JF_SERVER_API_TOKEN: 'another', JF_PORT: port });
    await page.shows('The API token is wrong');
    await page.shows('Sign in to look after this server');
  });
});
