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

test('events stay in order, whenever the link takes them', () => {
  const { outbox, send, retry, sent, link } = overLink();
  link.takes = 1;
  for (const text of ['a', 'b', 'c']) expect(send(text)).toBe(true);
  link.takes = 1;
  expect(send('d')).toBe(true);
  expect(sent).toEqual(['a']);
  expect([retry(), outbox.isEmpty]).toEqual([true, false]);
  link.takes = 9;
  expect([retry(), outbox.isEmpty]).toEqual([true, true]);
  send('e');
  expect(sent).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('what waits is bounded in size, but for one large event, and in time without progress', () => {
  const { send, retry, link } = overLink();
  const half = 'x'.repeat(4 * 1024 * 1024);
  expect([send(half + half + half), send('y')]).toEqual([true, false]);
  link.takes = 1;
  retry();
  expect([send(half), send(half), send('y')]).toEqual([true, true, false]);
  let attempts = 0;
  while (retry()) attempts += 1;
  expect(attempts).toBe(49);
});
