import { describe, expect, test } from '@jest/globals';
import { latencyText, watchedRoom } from './watched-room.js';

describe('a link to watch', () => {
  test('names the room in its hash', () => {
    expect(watchedRoom('#watch=Room-7')).toBe('Room-7');
  });

  test('with anything but an id shows nothing', () => {
    for (const hash of ['', '#', '#room=x', '#watch=', '#watch=../x', '#watch=a%2Fb'])
      expect(watchedRoom(hash)).toBeUndefined();
  });
});

test('the latency is told in tenths of a second once it is known', () => {
  expect(latencyText(1_449)).toBe('1.4 s behind');
  expect(latencyText(null)).toBe('');
  expect(latencyText(-20)).toBe('');
});
