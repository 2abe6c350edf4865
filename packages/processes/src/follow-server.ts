/** Terminals and service managers send these to every process of the server, which ends its forks in order. */
const SERVER_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Called in a forked process: ignores signals meant for the server, and exits when the server is gone. */
export function followServer(): void {
  for (const signal of SERVER_SIGNALS) process.on(signal, () => undefined);
  process.on('disconnect', () => process.exit(0));
}
