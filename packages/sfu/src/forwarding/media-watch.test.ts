import { describe, expect, test } from '@jest/globals';
import type { MediaReport } from '../media-state.js';
import { type MediaSigns, MediaWatch } from './media-watch.js';

const NOTHING: MediaSigns = { checks: 0, packets: 0, dtls: 'new', path: undefined, lacksMedia: false };
const UP: MediaSigns = { checks: 3, packets: 9, dtls: 'connected', path: 'udp', lacksMedia: false };

/** A watch with its clock. `for` polls every half second, as a transport does, and returns all reports. */
class Watched {
  readonly watch = new MediaWatch();
  nowMs = 1_000;

  answered(): MediaReport | undefined {
    return this.watch.negotiated(true, this.nowMs);
  }

  for(ms: number, signs: (step: number) => Partial<MediaSigns>): (MediaReport & { atMs: number })[] {
    const reports: (MediaReport & { atMs: number })[] = [];
    for (let step = 1; step * 500 <= ms; step++) {
      this.nowMs += 500;
      const report = this.watch.look({ ...NOTHING, ...signs(step) }, this.nowMs);
      if (report !== undefined) reports.push({ ...report, atMs: step * 500 });
    }
    return reports;
  }

  /** Connects within half a second. */
  connect(): (MediaReport & { atMs: number })[] {
    this.answered();
    return this.for(500, () => UP);
  }
}

const checking = (step: number): Partial<MediaSigns> => ({ ...UP, checks: UP.checks + step });

describe('the state of a client', () => {
  test('reports idle while there is nothing to send or receive', () => {
    const watched = new Watched();
    expect(watched.watch.negotiated(false, 0)).toBeUndefined();
    expect(watched.for(60_000, () => NOTHING)).toEqual([]);
    expect(watched.watch.report).toEqual({ state: 'idle' });
  });

  test('reports connected with the path and the time since the answer', () => {
    const watched = new Watched();
    expect(watched.answered()).toEqual({ state: 'connecting' });
    expect(watched.for(1_500, () => ({ ...UP, path: 'relay-tls' }))).toEqual([
      { state: 'connected', path: 'relay-tls', ms: 500, atMs: 500 },
    ]);
  });

  test('stays connected while only checks arrive', () => {
    const watched = new Watched();
    watched.connect();
    expect(watched.for(60_000, (step) => ({ ...UP, checks: UP.checks + Math.floor(step / 12) }))).toEqual([]);
  });

  test('reports an interruption after 8 s of silence, fails after another 20 s, and recovers by itself', () => {
    const watched = new Watched();
    watched.connect();
    expect(watched.for(30_000, () => UP)).toEqual([
      { state: 'interrupted', atMs: 8_000 },
      { state: 'failed', problem: 'NO_CHECKS', atMs: 28_000 },
    ]);
    expect(watched.for(500, checking)).toEqual([{ state: 'connected', path: 'udp', ms: 22_500, atMs: 500 }]);
  });

  test('reports idle after the client has closed its connection', () => {
    const watched = new Watched();
    watched.connect();
    expect(watched.for(60_000, () => ({ ...UP, dtls: 'closed' }))).toEqual([{ state: 'idle', atMs: 500 }]);
  });
});

describe('a connection that is not established within 10 s', () => {
  test.each([
    ['NO_CHECKS', 'nothing arrives', NOTHING],
    ['ONE_WAY', 'checks arrive, but the client starts no handshake', { checks: 40, path: 'udp' }],
    ['DTLS_FAILED', 'the handshake does not end', { checks: 40, path: 'udp', packets: 5, dtls: 'connecting' }],
  ] as const)('fails with %s when %s', (problem, _title, signs) => {
    const watched = new Watched();
    watched.answered();
    expect(watched.for(60_000, () => signs)).toEqual([{ state: 'failed', problem, atMs: 10_000 }]);
  });

  test('fails at once when the handshake fails', () => {
    const watched = new Watched();
    watched.answered();
    const reports = watched.for(500, () => ({ checks: 2, packets: 2, path: 'udp', dtls: 'failed' }));
    expect(reports).toEqual([{ state: 'failed', problem: 'DTLS_FAILED', atMs: 500 }]);
  });

  test('allows no extra time for further answers', () => {
    const watched = new Watched();
    watched.answered();
    watched.for(6_000, () => NOTHING);
    watched.answered();
    expect(watched.for(4_000, () => NOTHING)).toEqual([{ state: 'failed', problem: 'NO_CHECKS', atMs: 4_000 }]);
  });
});

describe('a published track that sends nothing', () => {
  test('reports a silent track of a connected client as a problem until it sends', () => {
    const watched = new Watched();
    watched.connect();
    watched.for(10_000, checking);
    const lacking = watched.for(500, (step) => ({ ...checking(step + 20), lacksMedia: true }));
    expect(lacking).toEqual([{ state: 'connected', path: 'udp', problem: 'NO_MEDIA', atMs: 500 }]);
    expect(watched.for(500, (step) => checking(step + 21))).toEqual([{ state: 'connected', path: 'udp', atMs: 500 }]);
  });

  test('gives a track 10 s from the moment when packets can pass', () => {
    const watched = new Watched();
    watched.connect();
    const reports = watched.for(12_000, (step) => ({ ...checking(step), lacksMedia: true }));
    expect(reports).toEqual([{ state: 'connected', path: 'udp', problem: 'NO_MEDIA', atMs: 10_000 }]);
  });
});
