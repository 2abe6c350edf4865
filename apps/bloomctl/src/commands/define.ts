import { type Command, InvalidArgumentError, Option } from 'commander';
import { Context, type GlobalOptions } from '../context.js';
import { EXIT, type ExitCode } from '../exit.js';
import type { Choices } from '../completion/table.js';
import type { Connection } from '../people/connection.js';
import { duration, whole } from '../values.js';
import type { Machine } from '../machine.js';

/** Runs a command. Returns its exit code, or nothing for 0. */
export type Handler<O> = (context: Context, args: string[], options: O) => Promise<ExitCode | void>;

/** The tree of commands being built. */
export interface Commands {
  readonly program: Command;
  /** Wraps a handler, which receives the command's options and the common ones. */
  run<O extends object = object>(handler: Handler<O>): (...args: unknown[]) => Promise<void>;
}

export function commandsOf(program: Command, machine: Machine, ended: (exit: ExitCode) => void): Commands {
  return {
    program,
    run(handler) {
      return async (...args) => {
        const command = args.at(-1) as Command;
        const context = new Context(command.optsWithGlobals<GlobalOptions>(), machine);
        try {
          ended((await handler(context, command.args, command.optsWithGlobals())) ?? EXIT.ok);
        } finally {
          await context.close();
        }
      };
    },
  };
}

/** Opens the connection to the server that the options, the environment or a context name. @throws Failure */
export async function connect(context: Context): Promise<Connection> {
  // Load on demand: other commands start faster without the client of the HTTP API.
  const { Connection } = await import('../people/connection.js');

  return await Connection.open(context);
}

const LIMIT = 50;

/** Options shared by several commands. */
export const shared = {
  limit: (command: Command, value = LIMIT, most = 1_000) =>
    command.option('--limit <n>', 'maximum number of lines', whole(1, most), value),
  all: (command: Command) => command.option('--all', 'ask every member'),
  on: (command: Command) =>
    command.option(
      '--on <node>',
      'the member that answers; default: where the room or actor lives, or else the asked node',
    ),
  yes: (command: Command) => command.option('--yes', 'do not ask for confirmation'),
  forTime: (command: Command, what: string) =>
    command.requiredOption('--for <time>', `${what}; then the node undoes it (20s, 5m; at most 1h)`, duration),
  cut: (command: Command) =>
    command
      .option('--depth <n>', 'levels shown', whole(1, 10), 3)
      .option('--bytes <n>', 'bytes shown of each part', whole(16, 65_536), 512),
  file: (command: Command, what: string) => command.option('-o, --output <file>', what),
};

/** Defines an option for a duration, whose default is shown as written. */
export function timeOption(flags: string, description: string, fallback: string): Option {
  return new Option(flags, description).argParser(duration).default(duration(fallback), fallback);
}

/** Returns the command that other commands are below; creates it if it has no meaning of its own. */
export function groupOf({ program }: Commands, name: string, description: string): Command {
  return program.commands.find((command) => command.name() === name) ?? program.command(name).description(description);
}

/** Parses an option with a fixed set of values, which completion offers. */
export function oneOf<T extends string>(...choices: readonly T[]): ((text: string) => T) & Choices {
  const parse = (text: string): T => {
    if (!choices.includes(text as T)) throw new InvalidArgumentError(`one of: ${choices.join(', ')}.`);
    return text as T;
  };

  return Object.assign(parse, { choices });
}
