import type { Term } from '@bloom/etf';

/** Returns a room of 20 participants with 2 tracks each, about 7 kB encoded. */
export function roomMap(): Term {
  return {
    id: 'room-9e3779b9',
    state: 'active',
    participants: Array.from({ length: 20 }, (_, i) => ({
      id: `participant-${hex(i)}`,
      name: `User ${i}`,
      joined: 1_700_000_000 + i,
      muted: i % 2 === 0,
      role: 'publisher',
      tracks: [0, 1].map((k) => ({
        id: `track-${hex(i * 2 + k)}`,
        kind: k === 0 ? 'audio' : 'video',
        ssrc: 3_000_000_000 + i * 7_919 + k,
        active: true,
        bitrate: k === 0 ? 32_000 : 1_500_000,
        codec: k === 0 ? 'opus' : 'VP8',
      })),
    })),
  };
}

function hex(i: number): string {
  return (Math.imul(0x9e3779b9, i + 1) >>> 0).toString(16).padStart(8, '0');
}

/** Returns operations per second, the best of five rounds after a warm-up. */
export function rate(operation: () => unknown, count: number): number {
  let best = 0;
  for (let round = 0; round < 6; round++) {
    const start = performance.now();
    for (let i = 0; i < count; i++) operation();
    if (round > 0) best = Math.max(best, (count * 1_000) / (performance.now() - start));
  }
  return best;
}
