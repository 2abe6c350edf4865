import { Command, CommanderError, Option } from 'commander';
import { actorCommands } from './commands/actors.js';
import { clusterCommands } from './commands/cluster.js';
import { completionCommand } from './commands/completion.js';
import { contextCommands } from './commands/contexts.js';
import { commandsOf, timeOption } from './commands/define.js';
import { logCommands } from './commands/logs.js';
import { mediaCommands } from './commands/media.js';
import { outsideCommands } from './commands/outside.js';
import { passCommands } from './commands/passes.js';
import { peerCommands } from './commands/peers.js';
import { placementCommands } from './commands/placement.js';
import { processCommands } from './commands/process.js';
import { recordingCommands } from './commands/recordings.js';
import { reachCommands } from './commands/reach.js';
import { roomCommands } from './commands/rooms.js';
import { schemaCommand } from './commands/schema.js';
import { scriptCommands } from './commands/scripts.js';
import { serverCheckCommands } from './commands/server-checks.js';
import { EXIT, type ExitCode, Failure } from './exit.js';
import { Output, type OutputOptions } from './output.js';
import { toFailure } from './reach/failures.js';
import { timeout, whole } from './values.js';
import type { Machine } from './machine.js';

/** Version of this program. Documents have a separate one. */
export const VERSION = '0.2.0';

const EXITS = `
Exit codes: 0 ok, 1 a check says no, 64 usage, 65 no such actor, room or node,
69 unreachable, 75 timeout, 77 cookie, token or rights, 78 configuration, 130 interrupted.
All commands and documents: docs/reference/bloomctl.md, docs/guide/debugging.md, docs/guide/shell.md`;

function withCommonOptions(program: Command): Command {
  return program
    .option(
      '--node <node>',
      'the node to ask: name@host, or a name on this machine; default: the only one there (BLOOM_NODE)',
    )
    .option('--cookie-file <file>', 'default: BLOOM_COOKIE, JF_DIST_COOKIE, ~/.bloom-cookie')
    .option('--cookie <cookie>', 'visible to every user of this machine; prefer a file')
    .option('--json', 'one JSON document')
    .option('--jsonl', 'one JSON document per line, for streams')
    .addOption(timeOption('--timeout <time>', 'for each answer, at most 1m', '5s').argParser(timeout))
    .option('--dump <file>', 'read a dump instead of asking a cluster')
    .option('--mapper-port <port>', 'port of the port mapper (ERL_EPMD_PORT); default 4369', whole(1, 65_535))
    .option(
      '--url <url>',
      'server whose HTTP API to ask; default: --context, BLOOM_URL, BLOOM_CONTEXT, the one in use, a node here',
    )
    .option('--context <name>', 'server whose HTTP API to ask, by its name: see bloomctl context')
    .option(
      '--token-file <file>',
      'its API token; default: that of the context, or BLOOM_TOKEN, for a server that is named',
    )
    .addOption(new Option('--token <token>').hideHelp().argParser(refuseToken))
    .option('--width <columns>', 'width of the text; default: that of the terminal', whole(20, 10_000))
    .addOption(new Option('--color', 'colour even without a terminal'))
    .addOption(new Option('--no-color', 'no colour (NO_COLOR)'));
}

/** @throws Failure always, without the value: the shell's history and every user of the machine have seen it already */
function refuseToken(): never {
  throw new Failure(EXIT.usage, 'a token on the command line can be read by every user of this machine', {
    advice: 'put it into a file that only you can read (chmod 600) and name the file: --token-file <file>',
  });
}

/** Runs one command to completion. Never throws. */
export async function runProgram(args: readonly string[], machine: Machine): Promise<ExitCode> {
  let exit: ExitCode = EXIT.ok;
  const program = withCommonOptions(new Command('bloomctl'))
    .description('inspect a running node or cluster of Bloom')
    .version(VERSION)
    .showHelpAfterError('(see --help)')
    .addHelpText('after', EXITS)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void machine.stdout.write(text),
      writeErr: (text) => void machine.stderr.write(text),
      getOutHelpWidth: () => machine.stdout.columns ?? 100,
      getErrHelpWidth: () => machine.stderr.columns ?? 100,
    });
  const commands = commandsOf(program, machine, (code) => (exit = code));
  const groups: [string, (group: typeof commands) => void][] = [
    ['Reach', reachCommands],
    ['From outside', outsideCommands],
    ['Cluster', clusterCommands],
    ['Actors', actorCommands],
    ['Process', processCommands],
    ['Media', mediaCommands],
    ['Placement', placementCommands],
    ['Logs', logCommands],
    ['People, over HTTP', contextCommands],
    ['People, over HTTP', roomCommands],
    ['People, over HTTP', peerCommands],
    ['People, over HTTP', passCommands],
    ['People, over HTTP', recordingCommands],
    ['Scripts', scriptCommands],
    ['Scripts', serverCheckCommands],
    ['Scripts', schemaCommand],
    ['Scripts', completionCommand],
  ];
  for (const [heading, define] of groups) {
    program.commandsGroup(`${heading}:`);
    define(commands);
  }
  // Commander takes an unknown command below one with an action for an argument too many.
  for (const command of program.commands) if (command.commands.length > 0) command.allowExcessArguments();
  program.hook('preAction', (_, command) => {
    const [unknown] = command.args;
    if (command.commands.length === 0 || unknown === undefined) return;
    const known = command.commands.map((each) => each.name()).join(', ');
    command.error(`error: unknown command '${unknown}' of ${command.name()}, which has: ${known}`);
  });
  try {
    await program.parseAsync([...args], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return complain(error, new Output(machine, program.opts<OutputOptions>()));
  }
  return exit;
}

function complain(error: unknown, output: Output): ExitCode {
  const failure = toFailure(error);
  output.complain(failure.message, failure.advice);
  // The program itself is at fault: print where.
  if (failure.exit === EXIT.fault && !(error instanceof Failure) && error instanceof Error)
    output.say(error.stack ?? '');
  if (output.format !== 'text') output.answer('error', { exit: failure.exit, message: failure.message }, () => []);
  return failure.exit;
}
