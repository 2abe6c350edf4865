import { describe, expect, test } from '@jest/globals';
import { KeyframeRequests } from './keyframe-requests.js';

describe('keyframe requests', () => {
  test('sends the first request immediately, but not those of other subscribers while it is outstanding', () => {
    const requests = new KeyframeRequests();
    expect(requests.request(1000)).toBe(true);
    expect(requests.request(1001)).toBe(false);
    expect(requests.request(1400)).toBe(false);
    expect(requests.outstanding).toBe(true);
  });

  test('repeats the request every 500 ms until the keyframe arrives', () => {
    const requests = new KeyframeRequests();
    requests.request(0);
    expect(requests.due(499)).toBe(false);
    expect(requests.due(500)).toBe(true);
    expect(requests.due(999)).toBe(false);
    expect(requests.due(1000)).toBe(true);
    requests.keyframe();
    expect(requests.outstanding).toBe(false);
    expect(requests.due(5000)).toBe(false);
  });

  test('holds back a request right after a keyframe, then sends it on the tick', () => {
    const requests = new KeyframeRequests();
    requests.request(0);
    requests.keyframe();
    expect(requests.request(100)).toBe(false);
    expect(requests.outstanding).toBe(true);
    expect(requests.due(249)).toBe(false);
    expect(requests.due(250)).toBe(true);
  });

  test('satisfies a request that was held back with an unrequested keyframe', () => {
    const requests = new KeyframeRequests();
    requests.request(0);
    requests.keyframe();
    requests.request(100);
    requests.keyframe();
    expect(requests.due(1000)).toBe(false);
  });

  test('gives up on a publisher that never answers, until the next request', () => {
    const requests = new KeyframeRequests();
    let sent = requests.request(0) ? 1 : 0;
    for (let now = 500; now < 60_000; now += 500) if (requests.due(now)) sent++;
    expect(sent).toBe(20);
    expect(requests.outstanding).toBe(false);
    expect(requests.request(60_000)).toBe(true);
  });

  test('does not repeat a cancelled request', () => {
    const requests = new KeyframeRequests();
    requests.request(0);
    requests.cancel();
    expect(requests.due(500)).toBe(false);
  });
});
