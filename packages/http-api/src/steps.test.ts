import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { RequestStep } from './steps.js';
import { TestApi } from './testing/api.js';

const ID = 'a-request-of-the-client';

describe('request id', () => {
  let api: TestApi;
  let steps: RequestStep[];

  beforeEach(async () => {
    steps = [];
    api = await TestApi.open({ onStep: (step) => steps.push(step) });
  });
  afterEach(() => api.close());

  const told = () => steps.map(({ requestId, what }) => [requestId, what]);

  test('passes the request id to the rooms, and reports it with request and response', async () => {
    const headers = { 'x-request-id': ID };
    await api.call('POST', '/room', { body: { roomId: 'kitchen' }, headers });
    await api.call('DELETE', '/room/kitchen/peer/nobody?secret=1', { headers });
    const { headers: answered } = await api.call('DELETE', '/room/kitchen');
    expect(api.rooms.requests).toEqual([ID, ID, answered['x-request-id']]);
    expect(told()).toEqual([
      [ID, 'POST /room'],
      [ID, '201'],
      [ID, 'DELETE /room/kitchen/peer/nobody'],
      [ID, '404'],
      [answered['x-request-id'], 'DELETE /room/kitchen'],
      [answered['x-request-id'], '204'],
    ]);
    expect(steps.map(({ ranMs }) => typeof ranMs)).toEqual([
      'undefined',
      'number',
      'undefined',
      'number',
      'undefined',
      'number',
    ]);
  });

  test('does not report requests for health and files, because they are frequent', async () => {
    await api.call('GET', '/health');
    await api.call('GET', '/hls/kitchen/index.m3u8');
    await api.call('GET', '/recording');
    expect(steps).toEqual([]);
  });
});
