import { rename, rm, writeFile } from 'node:fs/promises';
import { EXIT, Failure } from '../exit.js';
import { size } from '../text/units.js';
import { paint } from '../text/style.js';
import { whole } from '../values.js';
import type { Context } from '../context.js';
import { type Commands, shared } from './define.js';

interface Finding {
  check: string;
  ok: boolean;
  sentence: string;
}

/** Prints the answer of a check in one word and one sentence. */
export function tell(context: Context, { check, ok, sentence }: Finding, fields: object): 0 | 1 {
  context.output.answer('check', { check, ok, ...fields, message: sentence }, (screen) => [
    `${paint(screen, ok ? 'green' : 'red', ok ? 'ok' : 'no')}  ${sentence}`,
  ]);
  return ok ? EXIT.ok : EXIT.no;
}

export function scriptCommands({ program, run }: Commands): void {
  const check = program.command('check').description('checks for scripts: exit code 0 for yes, 1 for no');
  check
    .command('cluster')
    .description('at least n nodes are up, and all of them see each other')
    .requiredOption('--nodes <n>', 'minimum number of nodes', whole(1, 10_000))
    .action(
      run<{ nodes: number }>(async (context, _, { nodes }) => {
        const { asked, answer } = await context.ask('cluster', {});
        const up = answer.views.length;
        const ok = up >= nodes && answer.verdict === 'whole' && answer.unreachable.length === 0;
        const silent = answer.unreachable.map(({ name }) => name);
        const sentence =
          silent.length > 0
            ? `${up} of ${nodes} nodes answer; ${silent.join(', ')} ${silent.length === 1 ? 'does' : 'do'} not`
            : answer.verdict === 'whole'
              ? `${up} of ${nodes} nodes, and all of them see each other`
              : `${up} of ${nodes} nodes, but ${answer.missing.map((pair) => pair.join(' and ')).join('; ')} do not see each other`;
        const fields = { asked, expected: nodes, up, verdict: answer.verdict, unreachable: silent };
        return tell(context, { check: 'cluster', ok, sentence }, fields);
      }),
    );

  shared
    .all(check.command('queue'))
    .argument('[node]')
    .description('no mailbox has more than --max messages waiting')
    .requiredOption('--max <n>', 'maximum number of messages', whole(0, 100_000_000))
    .action(
      run<{ max: number; all?: boolean }>(async (context, args, { max, all }) => {
        const nodes = await context.targets(args, all === true);
        const { answers, unreachable } = await context.askAll('actors', { sort: 'queue', limit: 1 }, { nodes });
        const longest = answers
          .flatMap(({ node, answer }) => answer.actors.map(({ path, queue }) => ({ node, actor: path, queue })))
          .toSorted((a, b) => b.queue - a.queue)[0];
        const silent = unreachable.map(({ name }) => name);
        const ok = silent.length === 0 && (longest === undefined || longest.queue <= max);
        const words =
          longest === undefined
            ? 'no actor answers'
            : `the longest mailbox is ${longest.actor.slice(1)} on ${longest.node} with ${longest.queue}, at most ${max} allowed`;
        const sentence = silent.length === 0 ? words : `${words}; ${silent.join(', ')} did not answer`;
        const fields = { max, longest: longest ?? null, unreachable: silent };
        return tell(context, { check: 'queue', ok, sentence }, fields);
      }),
    );

  program
    .command('dump')
    .argument('[node]')
    .description(
      'save everything that can be read from a node to a file; read it with bloomctl --dump <file> <command>',
    )
    .requiredOption('-o, --output <file>', 'the file')
    .action(
      run<{ output: string }>(async (context, names, { output: file }) => {
        if (context.options.dump !== undefined) throw new Failure(EXIT.usage, 'this is already a dump');
        const [node = ''] = await context.targets(names, false);
        // Fail early if the node cannot be reached.
        await context.ask('hello', {}, { node });
        const [{ packDump }, { takeDump }] = await Promise.all([
          import('../dump/format.js'),
          import('../dump/take.js'),
        ]);
        const dump = await takeDump(await context.asker(), node, () => context.machine.now());
        const bytes = await packDump(dump);
        const part = `${file}.part`;
        try {
          await writeFile(part, bytes, { mode: 0o600 });
          await rename(part, file);
        } catch (error) {
          await rm(part, { force: true });
          throw new Failure(EXIT.usage, `${file} cannot be written: ${(error as Error).message}`);
        }
        const { entries, failures } = dump;
        const fields = { node, file, bytes: bytes.length, answers: entries.length, failures };
        context.output.answer('dumped', fields, () => [
          `${file}: ${entries.length} answers of ${node}, ${size(bytes.length)}${failures.length > 0 ? `; ${failures.length} questions were not answered` : ''}`,
        ]);
      }),
    );
}
