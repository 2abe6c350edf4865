import { expect, test } from '@jest/globals';
import { Outbox } from './outbox.js';

function overLink() {
  const link = { takes: 0 };
  const sent: string[] = [];
  const outbox = new Outbox();
  const take = (text: string): boolean => {
    if (link.takes === 0) return false;
    link.takes -= 1;
    return sent.push(text) > 0;
  };
  const send = (text: string): boolean => outbox.send(text, take);
  const retry = (): boolean => outbox.retry(take);

  return { outbox, send, retry, sent, link };
}

test('keeps events in order, whenever the link accepts them', () => {
  const { outbox, send, retry, sent, link } = overLink();
  link.takes = 1;
  for (const text of ['a', 'b', 'c']) expect(send(text)).toBe(true);
  link.takes = 1;
  expect(send('d')).toBe(true);
  expect(sent).toEqual(['a']);
  expect(retry()).toBe(true);
  expect(outbox.isEmpty).toBe(false);
  link.takes = 9;
  expect(retry()).toBe(true);
  expect(outbox.isEmpty).toBe(true);
  send('e');
  expect(sent).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('limits waiting events in size, except a single large one, and in time without progress', () => {
  const { send, retry, link } = overLink();
  const half = 'x'.repeat(4 * 1024 * 1024);
  expect(send(half + half + half)).toBe(true);
  expect(send('y')).toBe(false);
  link.takes = 1;
  retry();
  expect(send(half)).toBe(true);
  expect(send(half)).toBe(true);
  expect(send('y')).toBe(false);
  let attempts = 0;
  while (retry()) attempts += 1;
  expect(attempts).toBe(49);
});
