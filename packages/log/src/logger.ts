import { Writable } from 'node:stream';
import winston from 'winston';
import { jsonLine, textLine } from './format.js';
import { plainFields } from './fields.js';
import type { Log, LogFields, LogLevel, LogRecord } from './log.js';
import { createMasker } from './mask.js';
import { standardOutput, type Output } from './output.js';
import { RecentLines } from './recent-lines.js';

/** Number of lines kept for inspection. */
const RECENT_LINES = 1_000;

export interface LoggerOptions {
  /** True for JSON lines instead of text lines. */
  structured?: boolean;
  /** Minimum severity of written lines. Default `info`. */
  level?: LogLevel;
  /** Receives each line without its line break. Default: standard output. */
  sink?: (line: string) => void;
  /** Values to mask wherever they occur in a line (`secretValues` of the configuration). */
  secrets?: readonly string[];
  /** Returns Unix milliseconds. */
  now?: () => number;
}

export interface Logger extends Log {
  /** The lines written last, with a subscription to further ones. */
  readonly recent: RecentLines;
  /** Minimum severity of written lines. */
  readonly level: LogLevel;
  /** Sets the minimum severity of written lines, for this logger and all its children. */
  setLevel(level: LogLevel): void;
}

const LEVELS = { error: 0, warning: 1, info: 2, debug: 3 } as const satisfies Record<LogLevel, number>;

let output: Output | undefined;

/** Writes a line to standard output, which all loggers of the process share. */
function toStandardOutput(line: string, format: (record: LogRecord) => string): void {
  if (output === undefined) {
    const opened = standardOutput((lines) =>
      format({ time: Date.now(), level: 'warning', event: 'log.lines_dropped', fields: { lines } }),
    );
    output = opened;
    process.on('exit', () => opened.end());
  }
  output.line(line);
}

/** Writes lines that a slow reader has not taken yet. Runs by itself on exit, but not when the process is killed. */
export function flushLog(): void {
  output?.end();
}

function lineStream(sink: (line: string) => void): Writable {
  return new Writable({
    decodeStrings: false,
    write: (line: string, _encoding, done) => {
      try {
        sink(line);
      } catch {
        // A caller must not fail because the log cannot be written, and there is nowhere to report it.
      }
      done();
    },
  });
}

/** Creates a node's log on winston; children share its level, sink and ring buffer. */
export function createLogger(options: LoggerOptions = {}): Logger {
  const recent = new RecentLines(RECENT_LINES);
  const mask = createMasker(options.secrets ?? []);
  const now = options.now ?? Date.now;
  const line = options.structured === true ? jsonLine : textLine;
  const writer = winston.createLogger({
    levels: LEVELS,
    level: options.level ?? 'info',
    format: winston.format.printf((info) => line(info['record'] as LogRecord)),
    transports: [
      new winston.transports.Stream({
        stream: lineStream(options.sink ?? ((text) => toStandardOutput(text, line))),
        eol: '',
      }),
    ],
  });

  function logWith(bound: LogFields): Log {
    const writing = (level: LogLevel) => (event: string, fields?: LogFields) => {
      if (LEVELS[level] > LEVELS[writer.level as LogLevel]) return;

      const merged = fields === undefined ? bound : { ...bound, ...fields };
      const record: LogRecord = { time: now(), level, event: mask(event), fields: plainFields(merged, mask) };
      recent.push(record);
      writer.log({ level, message: record.event, record });
    };

    return {
      debug: writing('debug'),
      info: writing('info'),
      warn: writing('warning'),
      error: writing('error'),
      child: (fields) => logWith({ ...bound, ...fields }),
    };
  }

  return {
    ...logWith({}),
    recent,
    get level() {
      return writer.level as LogLevel;
    },
    setLevel: (level) => {
      writer.level = level;
    },
  };
}

/** A log that discards everything, for tests and tools. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};

/** Logs this thread's Node.js warnings instead of printing them, so that every line has the same format. */
export function logWarnings(log: Log): void {
  // Removes Node's own listener, which prints them.
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => log.warn('process.warning', { name, message }));
}
