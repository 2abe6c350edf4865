import type { AnswerOf } from '@bloom/inspection';
import { span } from '../text/units.js';
import { whole } from '../values.js';
import { logView } from '../views/logs.js';
import { unreachableLines } from '../views/media.js';
import { type Commands, oneOf, shared } from './define.js';
import { printStream } from '../streams.js';

type Line = AnswerOf<'logs'>['lines'][number];
const DAY_MS = 86_400_000;
/** Maximum number of lines that a node sends in one stream. */
const MAX_LINES = 1_000_000;

const level = (text: string): Line['level'] =>
  oneOf('debug', 'info', 'warning', 'error')(text === 'warn' ? 'warning' : text);

/** Returns a log line as a document. */
function logDocument({ at, node, level: severity, event, fields }: Line): object {
  return { t: new Date(at).toISOString(), node, level: severity, event, fields };
}

export function logCommands({ program, run }: Commands): void {
  shared
    .all(program.command('logs'))
    .argument('[node]')
    .description('the last lines of a log, and the next ones with --follow')
    .option('-f, --follow', 'continue until Ctrl-C')
    .option('--level <level>', 'debug, info, warning or error: this level and worse', level, 'debug')
    .option('--match <text>', 'only lines that contain this text')
    .option('--limit <n>', 'past lines of each node', whole(1, 1_000), 50)
    .action(
      run<{ all?: boolean; follow?: boolean; level: Line['level']; match?: string; limit: number }>(
        async (context, args, { all, follow, level: severity, match = null, limit }) => {
          const targets = await context.targets(args, all === true);
          if (follow === true) {
            const followed = await printStream(context, {
              kind: 'log-tail',
              document: 'log',
              fields: { level: severity, match, backlog: limit, limit: MAX_LINES, withinMs: DAY_MS },
              nodes: targets,
              isEndless: true,
              view: logView,
              fieldsOf: logDocument,
            });
            return followed.exit;
          }
          const { answers, unreachable } = await context.askAll(
            'logs',
            { level: severity, match, limit },
            { nodes: targets },
          );
          const { output } = context;
          const lines = answers.flatMap(({ answer }) => answer.lines).toSorted((a, b) => a.at - b.at);
          if (output.format === 'jsonl') {
            for (const line of lines) output.answer('log', logDocument(line), () => []);
            return undefined;
          }
          const { asked } = await context.asker();
          output.answer('logs', { asked, unreachable, lines: lines.map(logDocument) }, (screen) => [
            ...lines.flatMap((line) => logView(line, screen)),
            ...unreachableLines([...unreachable], screen),
          ]);
          return undefined;
        },
      ),
    );

  shared
    .yes(shared.forTime(program.command('log-level'), 'how long'))
    .argument('<node>')
    .argument('<level>', 'debug, info, warning, error', level)
    .description('change the log level of a node for a while')
    .action(
      run<{ for: number; yes?: boolean }>(async (context, [name = '', wanted = ''], { for: forMs, yes }) => {
        const node = await context.fullName(name);
        await context.confirm(`${node} will log at level ${wanted} for ${span(forMs)}`, yes);
        const { asked, answer } = await context.ask('log-level', { level: level(wanted), forMs }, { node });
        context.output.answer('log-level', { asked, node, ...answer }, () => [
          `${node} logs at level ${answer.level} for ${span(forMs)}, then at ${answer.before} again.`,
        ]);
      }),
    );
}
