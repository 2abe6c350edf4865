import { LOG_LEVELS, type LogLevel, type LogRecord } from '@bloom/log';
import type { Clock } from '@bloom/time';
import type { Answers, Producers } from '../inspector/inspector.js';
import type { Redactor } from '../inspector/redact.js';
import type { AnswerOf } from '../protocol/types.js';
import type { InspectionSources } from '../sources.js';
import type { FaultBook } from './fault-book.js';

/** Limits of a shown line; the log limits its lines itself. */
const LINE = { depth: 6, bytes: 16_384 };

type Line = AnswerOf<'logs'>['lines'][number];

export interface LogAnswersOptions {
  sources: InspectionSources;
  redactor: Redactor;
  faults: FaultBook;
  clock: Clock;
}

export function logAnswers({ sources, redactor, faults, clock }: LogAnswersOptions): Answers {
  const { logSource, self, log } = sources;
  if (logSource === null) return {};

  return {
    logs: ({ level, match, limit }) => {
      const wanted = filter(level, match);
      const lines = logSource.recent.last().filter(wanted).slice(-limit);

      return { lines: lines.map((record) => lineOf(record, self, redactor)) };
    },

    'log-level': ({ level, forMs }, { tool }) => {
      const louder = faults.list().find(({ kind }) => kind === 'log-level');
      // The level before any tool changed it, which will be restored.
      const before = louder === undefined ? logSource.level : (louder.target as LogLevel);
      log.warn('inspection.log_level', { tool, level, forMs });
      logSource.setLevel(level);
      faults.begin({ kind: 'log-level', target: before, tool, forMs, ended: () => logSource.setLevel(before) });

      return { level, before, until: clock.wall() + forMs };
    },
  };
}

export function logProducers({ sources, redactor }: Pick<LogAnswersOptions, 'sources' | 'redactor'>): Producers {
  const { logSource, self } = sources;
  if (logSource === null) return {};

  return {
    'log-tail': ({ level, match, backlog }, stream) => {
      const wanted = filter(level, match);
      const past = backlog === 0 ? [] : logSource.recent.last().filter(wanted).slice(-backlog);
      for (const record of past) stream.push(lineOf(record, self, redactor));

      return logSource.recent.subscribe((record) => {
        if (wanted(record)) stream.push(lineOf(record, self, redactor));
      });
    },
  };
}

function filter(level: LogLevel, match: string | null): (record: LogRecord) => boolean {
  const least = LOG_LEVELS.indexOf(level);
  const text = match?.toLowerCase();

  return (record) => {
    if (LOG_LEVELS.indexOf(record.level) < least) return false;
    if (text === undefined || record.event.toLowerCase().includes(text)) return true;

    return JSON.stringify(record.fields).toLowerCase().includes(text);
  };
}

function lineOf({ time, level, event, fields }: LogRecord, node: string, redactor: Redactor): Line {
  const shown = redactor.show(fields, LINE).value as Record<string, unknown>;

  return { at: time, node, level, event: redactor.text(event), fields: shown };
}
