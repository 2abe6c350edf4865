import { Argument } from 'commander';
import { completionScript, type Shell, SHELLS } from '../completion/scripts.js';
import { completionTable } from '../completion/table.js';
import type { Commands } from './define.js';

/** Completion of all commands; the last group, so that no command is missing. */
export function completionCommand({ program, run }: Commands): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .description('a script that completes commands and options in a shell: source <(bloomctl completion bash)')
    .action(
      run((context, [shell]) => {
        // The whole script, whatever the width of the terminal.
        context.output.lines([completionScript(shell as Shell, completionTable(program)).trimEnd()]);
        return Promise.resolve();
      }),
    );
}
