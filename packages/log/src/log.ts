/** Severity, lowest first, with the names of `JF_LOG_LEVEL`. */
export type LogLevel = 'debug' | 'info' | 'warning' | 'error';

export const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warning', 'error'];

/** Details of one event. Keys are camelCase here and snake_case in the output. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * The log interface that every package takes; `createLogger` implements it.
 *
 * The event name comes first and its details are fields: `log.info('room.created', { roomId, node })`.
 */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  /** Returns a log that adds these fields to every line; fields of a call take precedence. */
  child(fields: LogFields): Log;
}

/** One log line before formatting, with secrets already masked. */
export interface LogRecord {
  /** Milliseconds since the epoch. */
  time: number;
  level: LogLevel;
  event: string;
  /** Plain JSON values with snake_case keys. */
  fields: Record<string, unknown>;
}
