import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { IDLE, type MediaState, pathOf, problemOf } from './media-state.js';
import { PathWatch } from './path-watch.js';

let changes: MediaState['state'][];
let restartsAt: number[];
let watch: PathWatch;

beforeEach(() => {
  jest.useFakeTimers({ now: 0 });
  changes = [];
  restartsAt = [];
  watch = new PathWatch({
    changed: ({ state }) => changes.push(state),
    restart: () => restartsAt.push(Date.now()),
    explain: (state) => Promise.resolve({ ...IDLE, state }),
  });
});
afterEach(() => {
  watch.close();
  jest.useRealTimers();
});

describe('the state of the media', () => {
  test('reports connecting from the first answer with media on, and connected when the browser does', async () => {
    watch.answered(false);
    expect(changes).toEqual([]);
    watch.answered(true);
    watch.connectionChanged('connecting');
    watch.connectionChanged('connected');
    await jest.advanceTimersByTimeAsync(60_000);
    expect(changes).toEqual(['connecting', 'connected']);
    expect(restartsAt).toEqual([]);
  });

  test('fails after 10 s without a connection', async () => {
    watch.answered(true);
    await jest.advanceTimersByTimeAsync(9_999);
    expect(changes).toEqual(['connecting']);
    await jest.advanceTimersByTimeAsync(1);
    expect(changes).toEqual(['connecting', 'failed']);
  });

  test('keeps connecting for 10 s even if the browser gives up earlier, and makes another attempt', async () => {
    watch.answered(true);
    await jest.advanceTimersByTimeAsync(5_000);
    watch.connectionChanged('failed');
    expect(restartsAt).toEqual([5_000]);
    await jest.advanceTimersByTimeAsync(4_999);
    expect(changes).toEqual(['connecting']);
    await jest.advanceTimersByTimeAsync(1);
    expect(changes).toEqual(['connecting', 'failed']);
  });

  test('reports an interruption for 20 s before it fails, whatever the browser reports', async () => {
    watch.answered(true);
    watch.connectionChanged('connected');
    await jest.advanceTimersByTimeAsync(1_000);
    watch.connectionChanged('disconnected');
    watch.connectionChanged('failed');
    await jest.advanceTimersByTimeAsync(19_999);
    expect(changes.at(-1)).toBe('interrupted');
    await jest.advanceTimersByTimeAsync(1);
    expect(changes.at(-1)).toBe('failed');
  });

  test('returns to connected by itself', async () => {
    watch.answered(true);
    await jest.advanceTimersByTimeAsync(10_000);
    watch.connectionChanged('connected');
    await jest.advanceTimersByTimeAsync(0);
    expect(changes).toEqual(['connecting', 'failed', 'connected']);
  });
});

describe('ICE restarts', () => {
  test('restarts ICE 2 s after an interruption and with growing pauses of up to 30 s', async () => {
    watch.answered(true);
    watch.connectionChanged('connected');
    watch.connectionChanged('disconnected');
    await jest.advanceTimersByTimeAsync(125_000);
    expect(restartsAt).toEqual([2_000, 6_000, 14_000, 20_000, 50_000, 80_000, 110_000]);
  });

  test('does not restart ICE if the browser recovers within 2 s', async () => {
    watch.answered(true);
    watch.connectionChanged('connected');
    watch.connectionChanged('disconnected');
    await jest.advanceTimersByTimeAsync(1_999);
    watch.connectionChanged('connected');
    await jest.advanceTimersByTimeAsync(60_000);
    expect(restartsAt).toEqual([]);
  });

  test('restarts ICE at once when the browser has given up, unless restarts have begun', async () => {
    watch.answered(true);
    watch.connectionChanged('connected');
    watch.connectionChanged('disconnected');
    await jest.advanceTimersByTimeAsync(1_000);
    // Each restart fails within half a second, as without a network.
    for (let i = 0; i < 30; i++) {
      watch.connectionChanged('failed');
      await jest.advanceTimersByTimeAsync(500);
      watch.connectionChanged('connecting');
    }
    expect(restartsAt).toEqual([1_000, 5_000, 13_000]);
  });

  test('restarts ICE at once after an interruption that follows a recovery', async () => {
    watch.answered(true);
    watch.connectionChanged('connected');
    watch.connectionChanged('failed');
    await jest.advanceTimersByTimeAsync(10_000);
    watch.connectionChanged('connected');
    watch.connectionChanged('disconnected');
    watch.connectionChanged('failed');
    expect(restartsAt).toEqual([2_000, 6_000, 10_000]);
  });

  test('restarts ICE after a failed first connection', async () => {
    watch.answered(true);
    await jest.advanceTimersByTimeAsync(15_000);
    expect(restartsAt).toEqual([10_000, 14_000]);
  });

  test('stops restarting ICE when the connection ends', async () => {
    watch.answered(true);
    await jest.advanceTimersByTimeAsync(10_000);
    watch.close();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(restartsAt).toEqual([10_000]);
  });
});

const report = (...entries: object[]): RTCStatsReport =>
  new Map(entries.map((entry, i) => [String(i), entry])) as unknown as RTCStatsReport;
const pair = { type: 'candidate-pair', id: 'p', localCandidateId: 'l', state: 'succeeded', nominated: true };
const ours = (more: object) => ({ type: 'local-candidate', id: 'l', address: '192.168.1.5', ...more });

describe('the path', () => {
  test.each([
    ['udp', { candidateType: 'host', protocol: 'udp' }],
    ['tcp', { candidateType: 'host', protocol: 'tcp' }],
    ['relay-udp', { candidateType: 'relay', relayProtocol: 'udp' }],
    ['relay-tls', { candidateType: 'relay', protocol: 'udp', relayProtocol: 'tls' }],
  ])('reports the path %s for the candidate %p', (path, candidate) => {
    expect(pathOf(report({ type: 'transport', selectedCandidatePairId: 'p' }, pair, ours(candidate)))).toBe(path);
  });

  test('reports the path of the nominated pair in browsers that report no transport', () => {
    expect(pathOf(report(pair, ours({ candidateType: 'host', protocol: 'udp' })))).toBe('udp');
  });
});

describe('the problem', () => {
  const failed = { ice: 'failed', relayErrors: 0 } as const;

  test('reports NO_CANDIDATES without any address of the browser', () => {
    expect(problemOf(report(), failed)).toBe('NO_CANDIDATES');
  });

  test('reports NO_CANDIDATES if the server is on loopback and the browser is not', () => {
    expect(problemOf(report(ours({}), { type: 'remote-candidate', address: '127.0.0.1' }), failed)).toBe(
      'NO_CANDIDATES',
    );
  });

  test('reports RELAY_REFUSED if the relay answered with an error and gave no address', () => {
    expect(problemOf(report(ours({ candidateType: 'host' })), { ...failed, relayErrors: 1 })).toBe('RELAY_REFUSED');
  });

  test('reports DTLS_FAILED if ICE has a path', () => {
    expect(problemOf(report(), { ice: 'connected', relayErrors: 0 })).toBe('DTLS_FAILED');
  });

  test('reports no known problem if addresses exist on both sides but no packets pass', () => {
    expect(problemOf(report(ours({}), { type: 'remote-candidate', address: '203.0.113.7' }), failed)).toBeNull();
  });
});
