import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { CheckedApi } from './support/checked-api.js';
import { PeerConnection } from './support/peer-socket.js';
import { type Node, startProgram } from './support/program.js';

jest.setTimeout(30_000);

let node: Node;
let api: CheckedApi;

beforeAll(async () => {
  node = await startProgram({ JF_ROOM_METRICS_INTERVAL_MS: '1000' });
  api = new CheckedApi(node.url);
});
afterAll(() => node.dispose());

async function series(): Promise<Map<string, number>> {
  const answer = await fetch(`${node.metricsUrl}/metrics`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toContain('text/plain');
  const lines = (await answer.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));

  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

describe('the metrics endpoint', () => {
  test('has the traffic and process counters from the start', async () => {
    const values = await series();
    expect(values.get('bloom_rooms')).toBe(0);
    expect(values.get('bloom_traffic_ingress_webrtc_bytes_total')).toBe(0);
    expect(values.get('bloom_traffic_egress_webrtc_bytes_total')).toBe(0);
    expect(values.get('bloom_traffic_ingress_http_bytes_total')).toBeGreaterThanOrEqual(0);
    expect(values.get('process_resident_memory_bytes')).toBeGreaterThan(0);
    expect([...values.keys()].some((name) => name.startsWith('nodejs_eventloop_lag'))).toBe(true);
  });

  test('follows rooms and peers immediately, and counts time per tick', async () => {
    const room = await api.room({ roomId: 'measured' });
    const [ann] = [await api.peer(room), await api.peer(room)];
    const of = (name: string) => `${name}{room_id="measured"}`;
    let values = await series();
    expect(values.get('bloom_rooms')).toBe(1);
    expect(values.get(of('bloom_room_peers'))).toBe(2);
    expect(values.get(of('bloom_room_peer_connects_total')) ?? 0).toBe(0);

    const client = await PeerConnection.authenticated(node.url, ann?.token ?? '');
    expect((await series()).get(of('bloom_room_peer_connects_total'))).toBe(1);
    client.socket.close();
    await client.closed;
    const before = await series();
    await delay(2_200);
    values = await series();
    expect(values.get(of('bloom_room_peer_disconnects_total'))).toBe(1);
    expect(values.get(of('bloom_room_peer_crashes_total')) ?? 0).toBe(0);
    // Both peers have been connected throughout, but a tick may have come before them.
    const grown = (name: string) => (values.get(of(name)) ?? 0) - (before.get(of(name)) ?? 0);
    const [life, peerTime] = [grown('bloom_room_duration_seconds_total'), grown('bloom_room_peer_time_seconds_total')];
    expect(life).toBeGreaterThanOrEqual(1);
    expect(life).toBeLessThanOrEqual(5);
    expect(peerTime).toBe(2 * life);

    await api.call('DELETE', `/room/${room}/peer/${ann?.id}`);
    expect((await series()).get(of('bloom_room_peers'))).toBe(1);
    await api.call('DELETE', `/room/${room}`);
    values = await series();
    expect(values.get('bloom_rooms')).toBe(0);
    for (const [name, value] of values) if (name.includes('measured')) expect([name, value]).toEqual([name, 0]);
  });

  test('counts HTTP bytes both ways, but neither websockets nor itself', async () => {
    const room = await api.room();
    const { token } = await api.peer(room);
    const counted = async () => {
      const values = await series();
      return [
        values.get('bloom_traffic_ingress_http_bytes_total') ?? 0,
        values.get('bloom_traffic_egress_http_bytes_total') ?? 0,
      ] as const;
    };
    const before = await counted();
    const client = await PeerConnection.joined(node.url, token, 'x'.repeat(10_000));
    expect(await counted()).toEqual(before);
    await api.call('POST', '/room', { unknown: 'y'.repeat(5_000), roomId: 'bytes' });
    const [ingress, egress] = await counted();
    expect(ingress - before[0]).toBeGreaterThan(5_000);
    expect(ingress - before[0]).toBeLessThan(6_000);
    expect(egress - before[1]).toBeGreaterThan(200);
    expect(egress - before[1]).toBeLessThan(2_000);
    client.socket.terminate();
    for (const id of [room, 'bytes']) await api.call('DELETE', `/room/${id}`);
  });

  test('prints integers without decimals, and has no other path', async () => {
    const text = await (await fetch(`${node.metricsUrl}/metrics`)).text();
    expect(text).toMatch(/^bloom_rooms 0$/m);
    expect((await fetch(`${node.metricsUrl}/`)).status).toBe(404);
    expect((await fetch(`${node.metricsUrl}/metrics`, { method: 'POST' })).status).toBe(404);
  });
});
