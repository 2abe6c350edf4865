import { describe, expect, test } from '@jest/globals';
import { isSignalPath, targetOf } from './target.js';

describe('the target of a request', () => {
  test.each([
    ['/rtc?access_token=x', '/rtc', true],
    ['/rtc/validate', '/rtc/validate', true],
    ['/rtc/v1?join_request=x', '/rtc/v1', false],
    ['/rtc/v1', '/rtc/v1', false],
    ['https://a.example/rtc/?x=1', '/rtc', true],
    // As the Go SDK joins with one connection.
    ['/rtc?join_request=x', '/rtc', false],
    ['/rtc/validate?join_request=', '/rtc/validate', false],
  ])('is read from %s', (url, pathname, isOld) => {
    expect(targetOf(url)).toMatchObject({ pathname, isOld });
    expect(isSignalPath(pathname)).toBe(true);
  });

  test.each(['/', '', '/rtc/v2', '/rtcvalidate'])('is none of the signalling in %j', (url) => {
    expect(isSignalPath(targetOf(url).pathname)).toBe(false);
  });
});
