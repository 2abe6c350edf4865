import { expect, test } from '@jest/globals';
import { MediaReach } from './media-reach.js';
import type { MediaMeasure } from './room/media-journal.js';

const fingerprint = { algorithm: 'sha-256', value: '00' } as const;
const failed = (peerId: string, port = 50_000): MediaMeasure => ({
  type: 'media',
  peerId,
  outcome: 'failed',
  path: 'none',
  problem: 'NO_CHECKS',
  endpoint: { address: '203.0.113.7', port, fingerprint },
});
const connected = (peerId: string): MediaMeasure => ({
  ...failed(peerId),
  outcome: 'connected',
  path: 'udp',
  seconds: 1,
});

function after(...measures: MediaMeasure[]) {
  const reach = new MediaReach();
  for (const measure of measures) reach.record(measure);
  return reach.summary;
}

test('names the ports that people never reached', () => {
  expect(after(connected('a'), failed('b', 50_003), failed('c', 50_000))).toEqual({
    people: 3,
    unreached: 2,
    note: '2 of the last 3 people never reached 203.0.113.7:50000-50003/udp',
  });
});

test('reports nothing while everybody gets through', () => {
  expect(after(connected('a'), connected('b'))).toEqual({ people: 2, unreached: 0 });
});

test('counts a person who got through late, or failed later, as reached', () => {
  expect(after(failed('a'), connected('a'), failed('a')).unreached).toBe(0);
});

test('counts a person whose packets arrived, whatever failed afterwards', () => {
  expect(after({ ...failed('a'), problem: 'DTLS_FAILED' }).unreached).toBe(0);
});

test('remembers the latest hundred people', () => {
  const early = Array.from({ length: 5 }, (_, i) => failed(`early ${i}`));
  const late = Array.from({ length: 100 }, (_, i) => connected(`late ${i}`));
  expect(after(...early, ...late)).toEqual({ people: 100, unreached: 0 });
});
