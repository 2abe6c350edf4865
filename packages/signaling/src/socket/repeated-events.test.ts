import { expect, test } from '@jest/globals';
import { RepeatedEvents } from './repeated-events.js';

const event = (type: string, encoding: string): string => JSON.stringify({ type, data: { trackId: 'me:1', encoding } });

test('treats the same event as a repetition until an event of another type arrives', () => {
  const events = new RepeatedEvents();
  const told = ['l', 'm', 'l', 'm'].map((encoding) => events.repeats(event('disableTrackEncoding', encoding)));
  expect(told).toEqual([false, false, true, true]);
  expect(events.repeats(event('enableTrackEncoding', 'l'))).toBe(false);
  expect(events.repeats(event('enableTrackEncoding', 'l'))).toBe(false);
  expect(events.repeats(event('disableTrackEncoding', 'l'))).toBe(false);
  expect(events.repeats(event('disableTrackEncoding', 'l'))).toBe(true);
});

test('keeps neither many events nor long ones', () => {
  const events = new RepeatedEvents();
  const long = event('disableTrackEncoding', 'x'.repeat(1_000));
  expect(events.repeats(long)).toBe(false);
  expect(events.repeats(long)).toBe(false);
  for (let i = 0; i < 128; i++) events.repeats(event('disableTrackEncoding', `${i}`));
  const next = event('disableTrackEncoding', 'h');
  expect(events.repeats(next)).toBe(false);
  expect(events.repeats(next)).toBe(false);
});
