let stuck = 0;

/**
 * Media workers of this process that were given up because native code holds their threads, which nothing can interrupt.
 * While there are any, `process.exit` waits for them.
 */
export function stuckThreads(): number {
  return stuck;
}

export function threadStuck(): void {
  stuck += 1;
}

export function threadFreed(): void {
  stuck -= 1;
}
