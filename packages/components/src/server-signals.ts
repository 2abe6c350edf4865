/** A terminal or a service manager sends them to every process of the server, which ends its forked ones in order. */
const SERVER_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** For a forked process: signals that are meant for the server do not end it. */
export function leaveSignalsToServer(): void {
  for (const signal of SERVER_SIGNALS) process.on(signal, () => undefined);
}
