import { afterEach, describe, expect, test } from '@jest/globals';
import { HttpError } from './errors.js';
import type { NodeControl } from './operations.js';
import { TestApi } from './testing/api.js';

let api: TestApi;
afterEach(() => api.close());

const start = async (node: Partial<NodeControl> = {}): Promise<void> => {
  api = await TestApi.open({
    node: {
      notReady: () => undefined,
      drain: async () => 3,
      undrain: async () => ({ draining: false, rooms: 3 }),
      moveRoom: () => Promise.reject(new Error('nothing may move')),
      ...node,
    },
  });
};

describe('probes', () => {
  test('answers UP without a token', async () => {
    await start();
    for (const path of ['/health/live', '/health/ready']) {
      const { status, body } = await api.call('GET', path, { authorization: null });
      expect(status).toBe(200);
      expect(body).toEqual({ status: 'UP' });
    }
  });

  test.each(['starting', 'draining', 'no_media_worker', 'service_failed'] as const)(
    'reports that the node is not ready: %s',
    async (reason) => {
      await start({ notReady: () => reason });
      const { status, body } = await api.call('GET', '/health/ready', { authorization: null });
      expect(status).toBe(503);
      expect(body).toEqual({ status: 'DOWN', reason });
      expect((await api.call('GET', '/health/live', { authorization: null })).status).toBe(200);
    },
  );
});

describe('draining', () => {
  test('starts and ends draining, and reports the number of rooms left', async () => {
    const orders: unknown[] = [];
    await start({ drain: async (...order) => orders.push(order) });
    const started = await api.call('POST', '/node/drain', { body: { deadline: 60 } });
    expect(started.status).toBe(200);
    expect(started.body).toEqual({ data: { draining: true, rooms: 1 } });
    await api.call('POST', '/node/drain');
    await api.call('POST', '/node/drain?node=bloom@b');
    await api.call('POST', '/node/drain', { body: { move: true } });
    await api.call('POST', '/node/drain', { body: { move: true, moveTimeout: 5, deadline: null } });
    await api.call('POST', '/node/drain', { body: { move: false, moveTimeout: 5 } });
    expect(orders).toEqual([
      [null, 60_000, null],
      [null, null, null],
      ['bloom@b', null, null],
      [null, null, 30_000],
      [null, null, 5_000],
      [null, null, null],
    ]);
    const ended = await api.call('DELETE', '/node/drain');
    expect(ended.status).toBe(200);
    expect(ended.body).toEqual({ data: { draining: false, rooms: 3 } });
  });

  test.each([0, -1, 1.5, '60', 604_801])('refuses the deadline %j', async (deadline) => {
    await start();
    const { status, body } = await api.call('POST', '/node/drain', { body: { deadline } });
    expect(status).toBe(400);
    expect(body.errors).toBe(`Expected deadline to be a number of seconds from 1 to 604800, got: ${deadline}`);
  });

  test.each(['true', 1, 0, [], {}])('refuses to move as %j', async (move) => {
    await start({ drain: () => Promise.reject(new Error('nothing may be drained')) });
    const { status, body } = await api.call('POST', '/node/drain', { body: { move } });
    expect(status).toBe(400);
    expect(body.errors).toMatch(/^Expected move to be true or false, got: /);
  });

  test.each([0, 1.5, '60', 604_801])('refuses to move for %j s', async (moveTimeout) => {
    await start();
    const { status, body } = await api.call('POST', '/node/drain', { body: { move: true, moveTimeout } });
    expect(status).toBe(400);
    expect(body.errors).toBe(`Expected moveTimeout to be a number of seconds from 1 to 604800, got: ${moveTimeout}`);
  });

  test('refuses a field that it does not know, which may be a typo', async () => {
    await start({ drain: () => Promise.reject(new Error('nothing may be drained')) });
    const { status, body } = await api.call('POST', '/node/drain', { body: { mov: true } });
    expect([status, body.errors]).toEqual([400, 'Unknown field "mov"']);
  });

  test('demands the token for draining', async () => {
    await start();
    for (const method of ['POST', 'DELETE'] as const) {
      expect((await api.call(method, '/node/drain', { authorization: null })).status).toBe(401);
    }
  });
});

describe('moving a room', () => {
  const moved = { room: 'kitchen', from: 'bloom@a', to: 'bloom@b', ms: 412 };

  test('goes to the node that the body names, or to one that placement chooses', async () => {
    const orders: unknown[] = [];
    await start({
      moveRoom: async (...order) => {
        orders.push(order);
        return moved;
      },
    });
    const { status, body } = await api.call('POST', '/room/kitchen/move', { body: { node: 'bloom@b' } });
    expect([status, body]).toEqual([200, { data: moved }]);
    for (const empty of [undefined, {}, { node: null }]) await api.call('POST', '/room/kitchen/move', { body: empty });
    expect(orders).toEqual([
      ['kitchen', 'bloom@b'],
      ['kitchen', null],
      ['kitchen', null],
      ['kitchen', null],
    ]);
  });

  test.each([7, true, '', [], {}, 'n'.repeat(256)])('is refused for the node %j', async (to) => {
    await start();
    const { status, body } = await api.call('POST', '/room/kitchen/move', { body: { node: to } });
    expect(status).toBe(400);
    expect(body.errors).toBe('Expected node to be the name of a node, of 1 to 255 characters');
  });

  test('is refused with a field that it does not know, which may be a typo', async () => {
    await start();
    const { status, body } = await api.call('POST', '/room/kitchen/move', { body: { nod: 'b' } });
    expect([status, body.errors]).toEqual([400, 'Unknown field "nod"']);
  });

  test('demands the token', async () => {
    await start();
    const answer = await api.call('POST', '/room/kitchen/move', { authorization: null });
    expect(answer.status).toBe(401);
  });

  test.each([404, 409, 500, 503])('answers %d with the reason', async (status) => {
    await start({ moveRoom: () => Promise.reject(new HttpError(status, 'Room kitchen stays: it has components')) });
    const answer = await api.call('POST', '/room/kitchen/move');
    expect([answer.status, answer.body]).toEqual([status, { errors: 'Room kitchen stays: it has components' }]);
  });
});
