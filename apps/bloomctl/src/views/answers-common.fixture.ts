/** What the answers of the fixtures have in common. */
export const NOW = Date.UTC(2025, 0, 1, 2, 11, 14);
export const [A, B, C] = ['a@sfu-1.internal', 'b@sfu-2.internal', 'c@sfu-3.internal'] as const;
export const MIN = 60_000;
export const DAY = 86_400_000;
export const startedAt = NOW - 6 * DAY - 2 * 60 * MIN;
