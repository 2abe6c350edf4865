/** RFC 3261, table 4, in milliseconds. */
export const T1 = 500;
export const T2 = 4000;
export const T4 = 5000;
/** Timers B, D, F, H and J, and those of RFC 6026 (L, M). */
export const LIFETIME = 64 * T1;
