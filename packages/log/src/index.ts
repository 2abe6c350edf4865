export { LOG_LEVELS, type Log, type LogFields, type LogLevel, type LogRecord } from './log.js';
export { createLogger, flushLog, silentLog, type Logger, type LoggerOptions } from './logger.js';
export { createMasker, isSecretKey, MASK, printableUrl } from './mask.js';
export { RecentLines } from './recent-lines.js';
export { logWarnings } from './logger.js';
