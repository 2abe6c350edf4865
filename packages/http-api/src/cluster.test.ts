import { afterEach, describe, expect, test } from '@jest/globals';
import type { ClusterView } from './cluster-operations.js';
import { HttpError } from './errors.js';
import type { LogQuery } from './schemas/cluster.js';
import { TestApi } from './testing/api.js';

let api: TestApi;
afterEach(() => api.close());

const gone = async (): Promise<never> => {
  throw new HttpError(404, 'no node remembers where it placed the room attic');
};

const start = async (cluster: Partial<ClusterView> = {}): Promise<void> => {
  api = await TestApi.open({
    cluster: { report: gone, placement: gone, logs: async () => [], peerStats: gone, ...cluster },
  });
};

describe('questions about nodes', () => {
  test.each(['/cluster', '/cluster/placement', '/cluster/logs', '/room/kitchen/peer/ann/stats'])(
    'demands the token for %s',
    async (path) => {
      await start();
      expect((await api.call('GET', path, { authorization: null })).status).toBe(401);
    },
  );

  test('explains the placement of the room that the query names', async () => {
    const asked: (string | null)[] = [];
    const nodes = [
      {
        node: 'bloom@a',
        rooms: 1,
        forwardedTracks: 4,
        draining: false,
        answeredInMs: 1.5,
        failure: null,
        verdict: 'least loaded',
      },
    ];
    const decision = { at: 5, asked: 'bloom@a', chosen: 'bloom@a', policy: 'least-loaded', nodes, conflicts: [] };
    await start({
      placement: async (room) => {
        asked.push(room);
        return { room, ...decision };
      },
    });
    const { body } = await api.call('GET', '/cluster/placement?room=kitchen');
    expect(body.data).toEqual({ room: 'kitchen', ...decision });
    await api.call('GET', '/cluster/placement');
    expect(asked).toEqual(['kitchen', null]);
  });

  test('answers an unknown placement with the reason', async () => {
    await start();
    const { status, body } = await api.call('GET', '/cluster/placement?room=attic');
    expect(status).toBe(404);
    expect(body.errors).toBe('no node remembers where it placed the room attic');
  });
});

describe('the log of a node', () => {
  test('filters log lines by node, severity, text and count', async () => {
    const queries: LogQuery[] = [];
    const line = {
      at: 7,
      node: 'bloom@b',
      level: 'warning',
      event: 'room.crashed',
      fields: { room_id: 'attic' },
    } as const;
    await start({
      logs: async (query) => {
        queries.push(query);
        return [line];
      },
    });
    const { body } = await api.call('GET', '/cluster/logs?node=bloom@b&level=warning&match=attic&limit=10');
    expect(body).toEqual({ data: [line] });
    await api.call('GET', '/cluster/logs');
    expect(queries).toEqual([
      { node: 'bloom@b', level: 'warning', match: 'attic', limit: 10 },
      { node: null, level: null, match: null, limit: null },
    ]);
  });

  test.each([
    ['level=loud', 'Expected level to be debug, info, warning or error, got: loud'],
    ['limit=0', 'Expected limit to be a number from 1 to 1000, got: 0'],
    ['limit=many', 'Expected limit to be a number from 1 to 1000, got: many'],
    ['match=', 'Expected match to have 1 to 200 characters'],
    [`node=${'n'.repeat(256)}`, 'Expected node to have 1 to 255 characters'],
  ])('refuses %s', async (query, errors) => {
    await start();
    const { status, body } = await api.call('GET', `/cluster/logs?${query}`);
    expect(status).toBe(400);
    expect(body).toEqual({ errors });
  });
});
