import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { BloomClient } from './client.js';
import { serve } from './testing/server.js';

interface OpenApi {
  paths: Record<string, Record<string, { operationId: string; security?: Record<string, unknown>[] }>>;
}

/** A call of each operation, keyed by its id in the API description. */
const CALLS: Record<string, (client: BloomClient) => Promise<unknown>> = {
  create_room: (c) => c.createRoom({ maxPeers: 2 }),
  get_all_rooms: (c) => c.listRooms('cluster'),
  get_room: (c) => c.getRoom('r'),
  update_room: (c) => c.updateRoom('r', { maxPeers: null }),
  move_room: (c) => c.moveRoom('r', 'a@h'),
  delete_room: (c) => c.deleteRoom('r'),
  send_message: (c) => c.sendMessage('r', { topic: 't', data: 1 }),
  add_peer: (c) => c.addPeer('r'),
  create_invitation: (c) => c.createInvitation('r', { uses: 2 }),
  create_check: (c) => c.createCheck(),
  create_viewer: (c) => c.createViewer('r', { ttl: 60 }),
  update_peer: (c) => c.updatePeer('r', 'p', { metadata: null }),
  delete_peer: (c) => c.deletePeer('r', 'p'),
  update_track: (c) => c.muteTrack('r', 'p', { id: 't', muted: true }),
  delete_track: (c) => c.deleteTrack('r', 'p', 't'),
  get_peer_stats: (c) => c.peerStats('r', 'p'),
  add_component: (c) => c.addComponent('r', 'hls', {}),
  update_component: (c) => c.updateComponent('r', 'c', { paused: true }),
  delete_component: (c) => c.deleteComponent('r', 'c'),
  subscribe_to: (c) => c.subscribe('r', 'c', ['p']),
  dial: (c) => c.dial('r', 'c', '+48'),
  end_call: (c) => c.hangUp('r', 'c'),
  get_recordings: (c) => c.listRecordings('cluster'),
  delete_recording: (c) => c.deleteRecording('r'),
  get_raw_recordings: (c) => c.listRawRecordings('cluster'),
  delete_raw_recording: (c) => c.deleteRawRecording('r', 'part_2026-01-02T03-04-05.000Z'),
  mix_raw_recording: (c) => c.mixRawRecording('r', 'part_2026-01-02T03-04-05.000Z', { layout: 'speaker' }),
  delete_raw_recording_mix: (c) => c.deleteRawRecordingMix('r', 'part_2026-01-02T03-04-05.000Z'),
  healthcheck: (c) => c.health(),
  drain_node: (c) => c.drain({ node: 'a@h', deadline: 60 }),
  undrain_node: (c) => c.undrain({ node: 'a@h' }),
  get_cluster: (c) => c.cluster(),
  get_placement: (c) => c.placement('r'),
  get_logs: (c) => c.logs({ node: 'a@h', level: 'warning', match: 'ice', limit: 50 }),
};
/** Files that players fetch. */
const WITHOUT_CALL = ['get_hls_content', 'get_recording_content', 'get_raw_recording_content'];

const openApi = JSON.parse(
  readFileSync(new URL('../../../docs/reference/openapi.json', import.meta.url), 'utf8'),
) as OpenApi;
const operations = Object.entries(openApi.paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([, { security = [] }]) => security.some((scheme) => 'authorization' in scheme))
    .map(([method, { operationId }]) => ({ method: method.toUpperCase(), path, operationId })),
);

test('has a call for every operation of the API for backends', () => {
  const ids = operations.map(({ operationId }) => operationId);
  expect([...Object.keys(CALLS), ...WITHOUT_CALL].toSorted()).toEqual(ids.toSorted());
});

test('every call requests its operation', async () => {
  const asked: string[] = [];
  const server = await serve(({ method = '', url = '' }, response) => {
    asked.push(`${method} ${url}`);
    response.end(url.startsWith('/raw_recording?') ? '{"data":[]}' : '{"data":{}}');
  });
  try {
    const client = new BloomClient({ url: server.url, token: 't' });
    for (const { operationId, method, path } of operations) {
      await CALLS[operationId]?.(client);
      const pattern = path.replaceAll(/\{\w+\}/g, '[^/?]+');
      if (operationId in CALLS) expect(asked.at(-1)).toMatch(new RegExp(`^${method} ${pattern}(\\?.*)?$`));
    }
    expect(asked.filter((line) => line.includes('?'))).toEqual(
      expect.arrayContaining([
        'POST /node/drain?node=a%40h',
        'GET /cluster/placement?room=r',
        'GET /cluster/logs?node=a%40h&level=warning&match=ice&limit=50',
      ]),
    );
    await client.placement();
    expect(asked.at(-1)).toBe('GET /cluster/placement');
  } finally {
    await server.close();
  }
});
