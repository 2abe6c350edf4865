import { Command, Option } from 'commander';
import { expect, test } from '@jest/globals';
import { runProgram } from '../program.js';
import { testMachine } from '../testing/machine.js';
import { completionScript, SHELLS } from './scripts.js';
import { completionTable, flagsThat } from './table.js';

function program(): Command {
  const tool = new Command('tool').option('-f, --input <file>', 'a file').option('--all', 'all of them');
  const things = tool.command('things').description("somebody's things");
  things
    .command('add')
    .description('adds one')
    .addOption(new Option('--kind <kind>', 'the kind').choices(['big', 'small']))
    .addOption(new Option('--secret <text>').hideHelp());
  return tool;
}

test('finds all commands with what they take, except what is hidden', () => {
  const table = completionTable(program());
  expect(table.map(({ place }) => place)).toEqual(['', '/things', '/things/add']);
  expect(table[0]?.commands.map(({ name }) => name)).toEqual(['things', 'help']);
  expect(table[2]?.options[0]).toEqual({
    flags: ['--kind'],
    takes: 'value',
    choices: ['big', 'small'],
    description: 'the kind',
  });
  expect(flagsThat('file', table)).toEqual(['--input', '-f']);
  expect(flagsThat('value', table)).toEqual(['--kind']);
});

test.each(SHELLS)('quotes descriptions, and names no hidden option, in a script for %s', (shell) => {
  const script = completionScript(shell, completionTable(program()));
  expect(script).not.toContain('secret');
  if (shell === 'fish') expect(script).toContain("-d 'somebody\\'s things'");
});

/** The scripts skip the value of an option without asking which command it belongs to. */
test('has no flag that takes a value in one command of bloomctl and nothing in another', async () => {
  const machine = testMachine();
  expect(await runProgram(['completion', 'fish'], machine)).toBe(0);
  const takes = new Map<string, boolean>();
  for (const line of machine.printed.out.matchAll(
    /^complete -c bloomctl(?: -n '[^']*')?((?: -[sl] \S+)+)( -[xr])?/gm,
  )) {
    for (const [, flag = ''] of (line[1] ?? '').matchAll(/-[sl] (\S+)/g)) {
      const takesValue = line[2] !== undefined;
      expect([flag, takes.get(flag) ?? takesValue]).toEqual([flag, takesValue]);
      takes.set(flag, takesValue);
    }
  }
  expect(takes.get('limit')).toBe(true);
  expect(takes.get('json')).toBe(false);
  expect(takes.has('token')).toBe(false);
});
