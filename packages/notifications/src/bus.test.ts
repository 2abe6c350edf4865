import { describe, expect, test } from '@jest/globals';
import { createLogger, silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import { Metrics } from '@bloom/metrics';
import type { Notification } from '@bloom/protocol';
import { NotificationBus, type Envelope } from './bus.js';
import { countNotifications } from './count-notification.js';
import { MetricsReporter } from './metrics-reporter.js';
import { withRates } from './rates.js';

function ids(envelopes: readonly Envelope[]): string[] {
  return envelopes.flatMap((one) => (one.kind === 'notification' ? [one.notification.roomId] : []));
}

describe('event bus', () => {
  test('delivers every event to every listener in publishing order, even when a listener publishes', () => {
    const bus = new NotificationBus(silentLog);
    const first: Envelope[] = [];
    const second: Envelope[] = [];
    bus.subscribe((envelope) => {
      first.push(envelope);
      if (ids([envelope])[0] === 'a') bus.publish({ type: 'roomCreated', roomId: 'b' });
    });
    bus.subscribe((envelope) => second.push(envelope));

    bus.publish({ type: 'roomCreated', roomId: 'a' });
    bus.publish({ type: 'roomCreated', roomId: 'c' });

    expect(ids(first)).toEqual(['a', 'b', 'c']);
    expect(second).toEqual(first);
  });

  test('encodes the bytes of an event once', () => {
    const bus = new NotificationBus(silentLog);
    const bytes: Uint8Array[] = [];
    for (let i = 0; i < 3; i += 1) bus.subscribe((envelope) => bytes.push(envelope.bytes));

    bus.publish({ type: 'roomCreated', roomId: 'a' });
    bus.publishMetrics({ a: 1 });

    expect(new Set(bytes).size).toBe(2);
    expect(Buffer.from(bytes[3] ?? []).toString('hex')).toBe(`62090a07${Buffer.from('{"a":1}').toString('hex')}`);
  });

  test('logs a listener that throws and still delivers the event to the others', () => {
    const lines: string[] = [];
    const bus = new NotificationBus(createLogger({ sink: (line) => lines.push(line) }));
    const seen: Envelope[] = [];
    bus.subscribe(() => {
      throw new Error('broken');
    });
    const leave = bus.subscribe((envelope) => seen.push(envelope));

    bus.publish({ type: 'roomCreated', roomId: 'a' });
    leave();
    bus.publish({ type: 'roomCreated', roomId: 'b' });

    expect(ids(seen)).toEqual(['a']);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain('notifications.listener_failed');
  });
});

test('counts local events in the room metrics, but not those of other nodes', async () => {
  const bus = new NotificationBus(silentLog);
  const metrics = new Metrics({ tickSeconds: 10 });
  countNotifications(bus, metrics);
  const events: Notification[] = [
    { type: 'roomCreated', roomId: 'r' },
    { type: 'roomCreated', roomId: 's' },
    { type: 'peerAdded', roomId: 'r', peerId: '1' },
    { type: 'peerAdded', roomId: 'r', peerId: '2' },
    { type: 'peerAdded', roomId: 'r', peerId: '3' },
    { type: 'peerConnected', roomId: 'r', peerId: '1' },
    { type: 'peerDisconnected', roomId: 'r', peerId: '1' },
    { type: 'peerCrashed', roomId: 'r', peerId: '1', reason: '' },
    { type: 'peerDeleted', roomId: 'r', peerId: '2' },
    { type: 'roomCrashed', roomId: 's' },
  ];

  for (const event of events) bus.publish(event);
  bus.publish({ type: 'roomCreated', roomId: 'remote' }, 'remote');

  const text = await metrics.expose();
  for (const line of [
    'bloom_rooms 1',
    'bloom_room_peers{room_id="r"} 1',
    'bloom_room_peer_connects_total{room_id="r"} 1',
    'bloom_room_peer_disconnects_total{room_id="r"} 1',
    'bloom_room_peer_crashes_total{room_id="r"} 1',
    'bloom_room_peers{room_id="s"} 0',
  ]) {
    expect(text).toContain(`${line}\n`);
  }
  expect(text).not.toContain('remote');
});

describe('metrics reports', () => {
  test('adds rates from the second report on, for the documented counters only', () => {
    const track = {
      'inbound-rtp.packets': 150,
      'inbound-rtp.ssrc': 9,
      'inbound-rtp.encoding': 'VP8',
      rtx_stream: { 'inbound-rtp.packets': 6 },
    };
    const before = {
      'room_id=r': {
        'endpoint_id=p': {
          'ice.bytes_sent': 1000,
          'track_id=t': { ...track, 'inbound-rtp.packets': 100, rtx_stream: { 'inbound-rtp.packets': 1 } },
        },
      },
    };
    const now = {
      'room_id=r': { 'endpoint_id=p': { 'ice.bytes_sent': 3000, 'ice.bytes_received': 5, 'track_id=t': track } },
    };

    expect(withRates(now, before, 2000)).toEqual({
      'room_id=r': {
        'endpoint_id=p': {
          'ice.bytes_sent': 3000,
          'ice.bytes_sent-per-second': 1000,
          'ice.bytes_received': 5,
          'track_id=t': {
            ...track,
            'inbound-rtp.packets-per-second': 25,
            rtx_stream: { 'inbound-rtp.packets': 6, 'inbound-rtp.packets-per-second': 2.5 },
          },
        },
      },
    });
    expect(withRates(now, undefined, 0)).toEqual(now);
  });

  test('adds no rate for a counter that decreased, and leaves metadata unchanged', () => {
    const metadata = { 'ice.bytes_sent': 7 };
    const report = { 'endpoint.metadata': metadata, 'ice.bytes_sent': 1 };

    expect(withRates(report, { 'endpoint.metadata': { 'ice.bytes_sent': 3 }, 'ice.bytes_sent': 2 }, 1000)).toEqual(
      report,
    );
  });

  test('treats ids that look like metadata as ids', () => {
    const report = (bytes: number) => ({ 'room_id=metadata': { 'endpoint_id=metadata': { 'ice.bytes_sent': bytes } } });
    expect(withRates(report(30), report(10), 1000)).toEqual({
      'room_id=metadata': { 'endpoint_id=metadata': { 'ice.bytes_sent': 30, 'ice.bytes_sent-per-second': 20 } },
    });
  });

  test('publishes what the reporter is given, empty reports included, and survives a failure', async () => {
    const lines: string[] = [];
    const log = createLogger({ sink: (line) => lines.push(line) });
    const bus = new NotificationBus(log);
    const reports: unknown[] = [];
    bus.subscribe((envelope) => envelope.kind === 'metrics' && reports.push(envelope.report));
    const clock = new ManualClock();
    const given: (() => Record<string, unknown>)[] = [
      () => ({}),
      () => ({ 'ice.bytes_sent': 10 }),
      () => {
        throw new Error('no report');
      },
      () => ({ 'ice.bytes_sent': 30 }),
    ];
    const reporter = new MetricsReporter({
      bus,
      log,
      intervalMs: 1e6,
      clock,
      report: () => given.shift()?.() ?? {},
    });

    for (let i = 0; i < 4; i += 1) {
      await reporter.publish();
      clock.advance(1_000);
    }
    await reporter.close();

    expect(reports).toEqual([{}, { 'ice.bytes_sent': 10 }, { 'ice.bytes_sent': 30, 'ice.bytes_sent-per-second': 10 }]);
    expect(lines).toHaveLength(1);
  });

  test('computes nothing without interest, and restarts rates afterwards', async () => {
    const bus = new NotificationBus(silentLog);
    const reports: unknown[] = [];
    bus.subscribe((envelope) => envelope.kind === 'metrics' && reports.push(envelope.report));
    let wanted = true;
    let computed = 0;
    const clock = new ManualClock();
    const reporter = new MetricsReporter({
      bus,
      log: silentLog,
      intervalMs: 1e6,
      clock,
      wanted: () => wanted,
      report: () => {
        computed += 1;
        return { 'ice.bytes_sent': computed };
      },
    });

    for (const interest of [true, false, true, true]) {
      wanted = interest;
      await reporter.publish();
      clock.advance(1_000);
    }
    await reporter.close();

    expect(computed).toBe(3);
    expect(reports.map((report) => Object.keys(report as object).length)).toEqual([1, 1, 2]);
  });
});
