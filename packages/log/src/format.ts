import type { LogRecord } from './log.js';

/** Fields that identify the subject of a line; text lines show them before the level. */
const METADATA = ['request_id', 'room_id', 'peer_id'] as const;

/**
 * Formats a line as one JSON object with `time`, `severity`, `message` and `metadata` (docs/reference/configuration.md,
 * JF_STRUCTURED_LOGGING).
 */
export function jsonLine(record: LogRecord): string {
  return JSON.stringify({
    time: new Date(record.time).toISOString(),
    severity: record.level,
    message: record.event,
    metadata: record.fields,
  });
}

/**
 * Formats a line as `time metadata[level] message`, followed by the other fields as `name=value`. Escapes control
 * characters.
 */
export function textLine(record: LogRecord): string {
  let metadata = '';
  let rest = '';
  let stack = '';

  for (const name of METADATA) {
    if (record.fields[name] !== undefined) metadata += `${name}=${textValue(record.fields[name])} `;
  }
  for (const [name, value] of Object.entries(record.fields)) {
    if ((METADATA as readonly string[]).includes(name)) continue;

    if (isPlainError(value)) {
      rest += ` ${name}=${textValue(value.message)}${value.code === undefined ? '' : ` ${name}_code=${value.code}`}`;
      if (record.level === 'error' && value.stack !== undefined) stack += `\n${indented(value.stack)}`;
    } else {
      rest += ` ${name}=${textValue(value)}`;
    }
  }

  return `${new Date(record.time).toISOString()} ${metadata}[${record.level}] ${escapeControls(record.event)}${rest}${stack}`;
}

function isPlainError(value: unknown): value is { message: string; code?: string | number; stack?: string } {
  return typeof value === 'object' && value !== null && 'message' in value && 'stack' in value;
}

function textValue(value: unknown): string {
  if (typeof value === 'string') return /^[\w.:/@+-]+$/.test(value) ? value : escapeControls(JSON.stringify(value));

  return escapeControls(JSON.stringify(value));
}

/** Escapes control characters, so that a value cannot pass for a log line. */
function escapeControls(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

function indented(stack: string): string {
  return stack
    .split('\n')
    .map((line) => `    ${escapeControls(line)}`)
    .join('\n');
}
