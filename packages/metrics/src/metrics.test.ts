import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { openMetricsServer, type MetricsServer } from './metrics-server.js';
import { Metrics } from './metrics.js';

function start(tickSeconds = 10) {
  const clock = new ManualClock();
  const metrics = new Metrics({ tickSeconds, clock });

  return { clock, metrics };
}

/** Returns the values of the room's series by name. */
async function seriesOf(metrics: Metrics, roomId: string): Promise<Record<string, string>> {
  const lines = (await metrics.expose()).split('\n').filter((line) => line.includes(`{room_id="${roomId}"}`));

  return Object.fromEntries(lines.map((line) => [line.split('{')[0] ?? '', line.split(' ')[1] ?? '']));
}

async function value(metrics: Metrics, name: string): Promise<string | undefined> {
  const line = (await metrics.expose()).split('\n').find((one) => one.startsWith(`${name} `));

  return line?.split(' ')[1];
}

describe('rooms', () => {
  test('serves every series of a room as 0 from its creation', async () => {
    const { metrics } = start();

    metrics.roomCreated('r1');

    expect(await value(metrics, 'bloom_rooms')).toBe('1');
    expect(await seriesOf(metrics, 'r1')).toEqual({
      bloom_room_peers: '0',
      bloom_room_peer_time_seconds_total: '0',
      bloom_room_duration_seconds_total: '0',
      bloom_room_peer_connects_total: '0',
      bloom_room_peer_disconnects_total: '0',
      bloom_room_peer_crashes_total: '0',
    });
  });

  test('begins the series of a room that moves here with its peers, and ends them when it moves away', async () => {
    const { metrics, clock } = start();
    metrics.roomMoved('here', 'r1', 2);
    metrics.tick();
    expect(await seriesOf(metrics, 'r1')).toMatchObject({
      bloom_room_peers: '2',
      bloom_room_peer_time_seconds_total: '20',
      bloom_room_peer_connects_total: '0',
    });

    metrics.roomMoved('away', 'r1', 0);
    expect(await value(metrics, 'bloom_rooms')).toBe('0');
    expect(await seriesOf(metrics, 'r1')).toMatchObject({ bloom_room_peers: '0' });
    clock.advance(5 * 60_000);
    metrics.tick();
    expect(await seriesOf(metrics, 'r1')).toEqual({});
  });

  test('updates peers at once and times per tick, and prints integers without decimals', async () => {
    const { metrics } = start();
    metrics.roomCreated('r1');

    metrics.peerAdded('r1');
    metrics.peerAdded('r1');
    metrics.peerConnected('r1');
    metrics.tick();
    metrics.peerRemoved('r1');
    metrics.peerDisconnected('r1');
    metrics.peerCrashed('r1');
    metrics.tick();

    expect(await seriesOf(metrics, 'r1')).toEqual({
      bloom_room_peers: '1',
      bloom_room_peer_time_seconds_total: '30',
      bloom_room_duration_seconds_total: '20',
      bloom_room_peer_connects_total: '1',
      bloom_room_peer_disconnects_total: '1',
      bloom_room_peer_crashes_total: '1',
    });
  });

  test('sets everything to 0 on removal and drops it after 5 minutes', async () => {
    const { metrics, clock } = start();
    metrics.roomCreated('r1');
    metrics.roomCreated('r2');
    metrics.peerAdded('r1');
    metrics.peerConnected('r1');
    metrics.tick();

    metrics.roomRemoved('r1');
    expect(new Set(Object.values(await seriesOf(metrics, 'r1')))).toEqual(new Set(['0']));
    expect(await value(metrics, 'bloom_rooms')).toBe('1');

    clock.advance(299_999);
    metrics.tick();
    expect(Object.keys(await seriesOf(metrics, 'r1'))).toHaveLength(6);

    clock.advance(1);
    metrics.tick();
    expect(await seriesOf(metrics, 'r1')).toEqual({});
    expect(Object.keys(await seriesOf(metrics, 'r2'))).toHaveLength(6);
  });

  test('does not restore the values of a removed room on a late event', async () => {
    const { metrics } = start();
    metrics.roomCreated('r1');
    metrics.roomRemoved('r1');
    metrics.roomRemoved('r1');

    metrics.peerAdded('r1');
    metrics.peerDisconnected('r1');
    metrics.peerCrashed('never-created');

    expect(new Set(Object.values(await seriesOf(metrics, 'r1')))).toEqual(new Set(['0']));
    expect(await seriesOf(metrics, 'never-created')).toEqual({});
    expect(await value(metrics, 'bloom_rooms')).toBe('0');
  });

  test('starts a room that reuses the id of a removed one at 0 and keeps it', async () => {
    const { metrics, clock } = start();
    metrics.roomCreated('r1');
    metrics.roomRemoved('r1');
    metrics.roomCreated('r1');
    metrics.peerAdded('r1');

    clock.advance(600_000);
    metrics.tick();

    expect((await seriesOf(metrics, 'r1'))['bloom_room_peers']).toBe('1');
  });

  test('leaves nothing behind of a thousand created and removed rooms', async () => {
    const { metrics, clock } = start();
    const before = (await metrics.expose()).length;

    for (let i = 0; i < 1000; i += 1) {
      metrics.roomCreated(`r${i}`);
      metrics.peerAdded(`r${i}`);
      metrics.roomRemoved(`r${i}`);
    }
    clock.advance(300_000);
    metrics.tick();

    expect((await metrics.expose()).length).toBe(before);
  });
});

test('serves the traffic counters as 0 from the start', async () => {
  const { metrics } = start();
  const names = ['ingress_webrtc', 'egress_webrtc', 'ingress_http', 'egress_http'];

  for (const name of names) expect(await value(metrics, `bloom_traffic_${name}_bytes_total`)).toBe('0');

  metrics.webrtcReceived(5);
  metrics.webrtcSent(6);
  metrics.httpReceived(7);
  metrics.httpSent(8);
  const values = await Promise.all(names.map((name) => value(metrics, `bloom_traffic_${name}_bytes_total`)));
  expect(values).toEqual(['5', '6', '7', '8']);
});

test('counts links, placements and load per node', async () => {
  const { metrics } = start();

  metrics.nodeUp('bloom@a');
  metrics.nodeUp('bloom@b');
  metrics.nodeDown('bloom@b', false);
  metrics.nodeUp('bloom@c');
  metrics.nodeDown('bloom@c', true);
  metrics.load({ forwardedTracks: 12, rooms: 3 });
  metrics.roomPlaced('bloom@a');
  metrics.reservationRefused('bloom@b');

  const text = await metrics.expose();
  expect(text).toContain('bloom_cluster_link_up{node="bloom@a"} 1\n');
  expect(text).toContain('bloom_cluster_link_up{node="bloom@b"} 0\n');
  expect(text).not.toContain('bloom_cluster_link_up{node="bloom@c"}');
  expect(text).toContain('bloom_cluster_nodedown_total{node="bloom@b"} 1\n');
  expect(text).toContain('bloom_cluster_nodedown_total{node="bloom@c"} 1\n');
  expect(text).toContain('bloom_load_forwarded_tracks 12\n');
  expect(text).toContain('bloom_placements_total{node="bloom@a"} 1\n');
  expect(text).toContain('bloom_placement_conflicts_total{node="bloom@b"} 1\n');
});

test('keeps two sets of metrics separate', async () => {
  const one = new Metrics({ tickSeconds: 10 });
  const two = new Metrics({ tickSeconds: 10 });
  one.roomCreated('r1');

  expect(await value(two, 'bloom_rooms')).toBe('0');
});

test('measures the process once it is observed', async () => {
  const metrics = new Metrics({ tickSeconds: 10 });
  expect(await metrics.expose()).not.toContain('process_');

  metrics.observeProcess();

  expect(await metrics.expose()).toContain('nodejs_eventloop_lag_seconds');
  expect(await metrics.expose()).toContain('process_resident_memory_bytes');
});

describe('the listener', () => {
  let server: MetricsServer | undefined;

  afterEach(async () => {
    await server?.close();
    await server?.close();
    server = undefined;
  });

  test('serves GET and HEAD /metrics and nothing else', async () => {
    const { metrics } = start();
    server = await openMetricsServer({ metrics, ip: '127.0.0.1', port: 0 });

    const answer = await fetch(`${server.url}/metrics`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(await answer.text()).toContain('\nbloom_rooms 0\n');

    const head = await fetch(`${server.url}/metrics`, { method: 'HEAD' });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe('');
    expect((await fetch(`${server.url}/`)).status).toBe(404);
    expect((await fetch(`${server.url}/metrics`, { method: 'POST', body: 'x' })).status).toBe(404);
  });

  test('closes a connection that sends a second request before the first answer, whatever it asks for', async () => {
    const { metrics } = start();
    let scrapes = 0;
    metrics.beforeScrape(() => Promise.resolve(void (scrapes += 1)));
    server = await openMetricsServer({ metrics, ip: '127.0.0.1', port: 0 });
    const socket = connect(server.port, '127.0.0.1').on('error', () => undefined);
    const received: Buffer[] = [];
    socket.on('data', (bytes) => received.push(bytes)).write('GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(1_000));
    await once(socket, 'close');

    expect(received).toEqual([]);
    expect((await fetch(`${server.url}/metrics`)).status).toBe(200);
    expect(scrapes).toBe(2);
  });

  test('replaces the oldest connection of a full network once it is a second old', async () => {
    const { metrics, clock } = start();
    server = await openMetricsServer({ metrics, ip: '127.0.0.1', port: 0, clock });
    const { port, url } = server;
    const sockets = Array.from({ length: 512 }, () => connect(port, '127.0.0.1'));
    await Promise.all(sockets.map((socket) => once(socket.resume(), 'connect')));
    const closed = sockets.map((socket) => once(socket, 'close'));

    const early = connect(port, '127.0.0.1').on('error', () => {});
    await once(early.resume(), 'close');
    expect(sockets.filter((socket) => socket.closed)).toEqual([]);

    clock.advance(1_000);
    expect((await fetch(`${url}/metrics`)).status).toBe(200);
    await closed[0];
    expect(sockets.filter((socket) => socket.closed)).toHaveLength(1);
    for (const socket of sockets) socket.destroy();
    await Promise.all(closed);
  });

  test('rejects with an error that names the port when it is in use', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', () => resolve()));
    const { port } = taken.address() as AddressInfo;

    const failed = openMetricsServer({ metrics: start().metrics, ip: '127.0.0.1', port });
    await expect(failed).rejects.toMatchObject({
      code: 'METRICS_LISTEN_FAILED',
      message: expect.stringContaining(`127.0.0.1:${port}`),
    });
    await new Promise<void>((resolve) => taken.close(() => resolve()));
  });
});

test('serves the old names on demand, with the same values', async () => {
  const metrics = new Metrics({ tickSeconds: 10, compat: true });
  metrics.roomCreated('r1');
  metrics.peerAdded('r1');
  const lines = (await metrics.expose()).split('\n');
  const old = lines.filter((line) => line.startsWith('jellyfish_'));

  expect(old).toEqual([
    'jellyfish_rooms 1',
    'jellyfish_room_peers{room_id="r1"} 1',
    'jellyfish_room_peer_time_total_seconds{room_id="r1"} 0',
    'jellyfish_room_duration_seconds{room_id="r1"} 0',
    'jellyfish_room_peer_connects_total{room_id="r1"} 0',
    'jellyfish_room_peer_disconnects_total{room_id="r1"} 0',
    'jellyfish_room_peer_crashes_total{room_id="r1"} 0',
    'jellyfish_traffic_ingress_webrtc_total_bytes 0',
    'jellyfish_traffic_egress_webrtc_total_bytes 0',
    'jellyfish_traffic_ingress_http_total_bytes 0',
    'jellyfish_traffic_egress_http_total_bytes 0',
  ]);
  expect(lines).toContain('# TYPE jellyfish_rooms gauge');
  expect(lines.filter((line) => /^bloom_(?:traffic|room_(?:peer_time|duration))/.test(line))).toEqual([
    'bloom_room_peer_time_seconds_total{room_id="r1"} 0',
    'bloom_room_duration_seconds_total{room_id="r1"} 0',
    'bloom_traffic_ingress_webrtc_bytes_total 0',
    'bloom_traffic_egress_webrtc_bytes_total 0',
    'bloom_traffic_ingress_http_bytes_total 0',
    'bloom_traffic_egress_http_bytes_total 0',
    'bloom_room_peer_time_total_seconds{room_id="r1"} 0',
    'bloom_room_duration_seconds{room_id="r1"} 0',
    'bloom_traffic_ingress_webrtc_total_bytes 0',
    'bloom_traffic_egress_webrtc_total_bytes 0',
    'bloom_traffic_ingress_http_total_bytes 0',
    'bloom_traffic_egress_http_total_bytes 0',
  ]);
  expect(await new Metrics({ tickSeconds: 10 }).expose()).not.toMatch(/jellyfish_|bloom_\w+_total_(?:bytes|seconds)/);
});

test('ends the name of every counter in _total', async () => {
  const counters = (await new Metrics({ tickSeconds: 10 }).expose()).match(/^# TYPE bloom_\w+ counter$/gm) ?? [];
  expect(counters.length).toBeGreaterThan(20);
  expect(counters.filter((line) => !line.endsWith('_total counter'))).toEqual([]);
});
