// The sessions of docs/guide/debugging.md and shell.md: each is a comment with what to type, followed by its output.
// They run against a real cluster, to rewrite the pages or to compare them with the programs' current output.
import { setTimeout as delay } from 'node:timers/promises';
import type { Trio } from './trio.js';

export interface Session {
  /** Lines of the comment. */
  readonly steps: readonly string[];
  /** The output that the page shows. */
  readonly shown: string;
}

const SESSION = /<!-- session\n([\s\S]*?)-->\n\n?```console\n([\s\S]*?)```/g;

export function sessionsOf(page: string): Session[] {
  return [...page.matchAll(SESSION)].map(([, steps = '', shown = '']) => ({
    steps: steps.trim().split('\n'),
    shown,
  }));
}

export function withSessions(page: string, texts: readonly string[]): string {
  let at = 0;
  return page.replaceAll(
    SESSION,
    (_, steps: string) => `<!-- session\n${steps}-->\n\n\`\`\`console\n${texts[at++]}\`\`\``,
  );
}

/** Values that a step may refer to as `$name`, and actions besides running the program. */
export interface Stagehand {
  readonly names: Map<string, string>;
  readonly actions: Readonly<Record<string, () => Promise<void> | void>>;
}

const WIDTH = 100;

/** Runs the steps and returns what a terminal would show. */
export async function play(steps: readonly string[], trio: Trio, { names, actions }: Stagehand): Promise<string> {
  let shown = '';
  for (const step of steps) {
    const [word = '', ...rest] = step.split(' ');
    if (word === 'do') {
      const action = actions[rest[0] ?? ''];
      if (!action) throw new Error(`nobody knows how to ${step}`);
      await action();
    } else if (word === 'wait') await delay(Number(rest[0]));
    else shown += await typed(step, trio, names);
  }
  return shown;
}

async function typed(step: string, trio: Trio, names: ReadonlyMap<string, string>): Promise<string> {
  const line = step.replaceAll(/\$(\w+)/g, (whole, name: string) => names.get(name) ?? whole);
  const found = /^((?:\w+=\S+ )*)(?:for (\d+)ms )?bloomctl (.*)$/.exec(line);
  if (!found) throw new Error(`this is nothing to type: ${line}`);
  const [, assignments = '', forMs, words = ''] = found;
  const env = Object.fromEntries(
    assignments
      .trim()
      .split(' ')
      .filter(Boolean)
      .map((pair) => pair.split('=') as [string, string]),
  );
  const args = [...words.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '');
  const running = trio.start(args, { env: { BLOOM_COOKIE: '', COLUMNS: String(WIDTH), ...env } });
  if (forMs !== undefined) setTimeout(() => running.child.kill('SIGINT'), Number(forMs));
  const { code, out, err } = await running.ended;
  // Stderr comes first when a stream begins and last when it ends, which is the program's order.
  const [first = '', ...others] = err.split(/(?<=\n)/);
  const isStream = first.startsWith('tracing') || first.includes('taking');
  const text = shown(isStream ? first + out + others.join('') : out + err, trio);
  const typedLine = shown(`$ ${assignments}bloomctl ${words}\n`, trio);
  const end = code === 0 ? '' : `exit ${code}\n`;
  // Replaces the user's name.
  return typedLine + `${text}${forMs === undefined ? '' : '^C\n'}${end}\n`.replaceAll(/\broot as b/g, 'ops as b');
}

/** Returns a text with the ports that readers have, and with tokens cut. */
function shown(text: string, trio: Trio): string {
  const { a, b, c } = trio.nodes;
  const withPorts = [a, b, c].reduce((whole, { host }, i) => whole.replaceAll(host, `127.0.0.1:${5_002 + i}`), text);

  return withPorts.replaceAll(trio.folder, '/home/ops').replaceAll(/\b([\w-]{8})[\w-]{32,}\.[\w-]{20,}/g, '$1…');
}

/** Returns the parts that are the same in every run: words, not figures. */
export function shapeOf(shown: string): string[] {
  return shown
    .split(/^(?=\$ )/m)
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const lines = part
        .trimEnd()
        .split('\n')
        .map((line) =>
          line
            .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '#')
            .replaceAll(/ as b(?:.*…|loomctl-\S+)/g, ' as #')
            // Which node it is depends on which was first.
            .replaceAll(/\b[abc]@/g, '#@')
            .replaceAll(/(?<![\w-])[\w-]{20}(?![\w-])/g, '#')
            .replaceAll(/[-+]?\d[\d.:]*(?: ?(?:ms|s|min|kB|MB|GB|B|k|M)\b)?/g, '#')
            .replaceAll(/[0-9a-f]{4}…/g, '#')
            .replaceAll(/\s+/g, ' ')
            .trim(),
        );
      // The number and content of these lines vary, but not how they end.
      const end = lines.at(-1) ?? '';
      return [lines[0], lines[1] ?? '', end.startsWith('exit ') ? end : 'ok'].join(' | ');
    });
}
