// The scripts of `bloomctl completion` in the shells that they are for.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from '@jest/globals';
import { findProgram, testWith } from '../harness/needs.js';
import { repository } from '../harness/processes.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bloomctl-completion-'));
  writeFileSync(join(folder, 'my token.txt'), '');
  for (const shell of ['bash', 'zsh', 'fish']) {
    const program = join(repository, 'apps/bloomctl/bin/bloomctl.js');
    const { stdout } = spawnSync(process.execPath, [program, 'completion', shell], { encoding: 'utf8' });
    writeFileSync(join(folder, `completion.${shell}`), stdout);
  }
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Asks a shell what may follow. Each line ends with the word that is being typed. */
type Ask = (line: string) => string[];

function run(shell: string, args: readonly string[], script: string): string[] {
  const { stdout, stderr } = spawnSync(findProgram(shell) ?? shell, [...args, '-c', script], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '');
}

const quoted = (line: string): string =>
  line
    .split(' ')
    .map((word) => `'${word}'`)
    .join(' ');

const inBash: Ask = (line) =>
  run(
    'bash',
    ['--norc'],
    `source completion.bash
compopt() { :; }
COMP_WORDS=(${quoted(line)}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _bloomctl; printf '%s\\n' "\${COMPREPLY[@]}"`,
  );

/** Completion as such runs only on a terminal, so the functions that the script calls print their words. */
const inZsh: Ask = (line) => {
  const typed = line.split(' ').at(-1) ?? '';
  const offered = run(
    'zsh',
    ['-f'],
    `compdef() { :; }; compadd() { shift; print -l -- "$@"; }; _files() { print -l -- *; }
source ./completion.zsh
words=(${quoted(line)}); CURRENT=\${#words}; _bloomctl`,
  );
  return offered.filter((word) => word.startsWith(typed));
};

const inFish: Ask = (line) =>
  run('fish', ['--no-config'], `source completion.fish; complete -C '${line}'`).map((one) => one.split('\t')[0] ?? '');

function follows(ask: Ask): void {
  expect(ask('bloomctl roo').toSorted()).toEqual(['room', 'rooms']);
  expect(ask('bloomctl rooms ')).toEqual(expect.arrayContaining(['list', 'create', 'delete']));
  expect(ask('bloomctl rooms create --max')).toEqual(['--max-peers']);
  // The value of an option is no command.
  expect(ask('bloomctl --node peers rooms cr')).toEqual(['create']);
  expect(ask('bloomctl rooms create --video-codec ').toSorted()).toEqual(['h264', 'vp8']);
  expect(ask('bloomctl rooms list --cont')).toEqual(['--context']);
  expect(ask('bloomctl completion ')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']));
  expect(ask('bloomctl --token-file my').map((name) => name.replaceAll('\\', ''))).toEqual(['my token.txt']);
  expect(ask('bloomctl --tok')).toEqual(['--token-file']);
  expect(ask('bloomctl rooms list --limit ')).toEqual([]);
}

testWith(['bash'], 'completes commands, options, their values and files in bash', () => follows(inBash));
testWith(['zsh'], 'completes commands, options, their values and files in zsh', () => follows(inZsh));
testWith(['fish'], 'completes commands, options, their values and files in fish', () => follows(inFish));
