/** Severity, least first; the names are those of `JF_LOG_LEVEL`. */
export type LogLevel = 'debug' | 'info' | 'warning' | 'error';

export const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warning', 'error'];

/** Circumstances of one event. Keys are camelCase here and snake_case in the output. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * The log that every package takes; `createLogger` implements it.
 *
 * The event name comes first, its circumstances are fields: `log.info('room.created', { roomId, node })`.
 */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  /** Returns the same log with these fields bound to every line; fields of the call take precedence. */
  child(fields: LogFields): Log;
}

/** One line of the log before formatting. Secrets are masked already. */
export interface LogRecord {
  /** Milliseconds since the epoch. */
  time: number;
  level: LogLevel;
  event: string;
  /** Plain JSON values, snake_case keys. */
  fields: Record<string, unknown>;
}
