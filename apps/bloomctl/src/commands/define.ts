import { type Command, InvalidArgumentError, Option } from 'commander';
import { Context, type GlobalOptions } from '../context.js';
import { EXIT, type ExitCode } from '../exit.js';
import { duration, whole } from '../values.js';
import type { World } from '../world.js';

/** What a command does; it ends with 0 unless it says otherwise. */
export type Handler<O> = (context: Context, args: string[], options: O) => Promise<ExitCode | void>;

/** The tree of commands under construction. */
export interface Commands {
  readonly program: Command;
  /** Runs a handler with the command's options, its own and the common ones. */
  run<O extends object = object>(handler: Handler<O>): (...args: unknown[]) => Promise<void>;
}

export function commandsOf(program: Command, world: World, ended: (exit: ExitCode) => void): Commands {
  return {
    program,
    run(handler) {
      return async (...args) => {
        const command = args.at(-1) as Command;
        const context = new Context(command.optsWithGlobals<GlobalOptions>(), world);
        try {
          ended((await handler(context, command.args, command.optsWithGlobals())) ?? EXIT.ok);
        } finally {
          await context.close();
        }
      };
    },
  };
}

const LIMIT = 50;

/** Options that several commands share. */
export const shared = {
  limit: (command: Command, value = LIMIT, most = 1_000) =>
    command.option('--limit <n>', 'lines at most', whole(1, most), value),
  all: (command: Command) => command.option('--all', 'ask every member'),
  on: (command: Command) =>
    command.option(
      '--on <node>',
      'the member that is to answer; default: the asked node, or where the room or actor lives',
    ),
  yes: (command: Command) => command.option('--yes', 'do not ask whether it is meant'),
  forTime: (command: Command, what: string) =>
    command.requiredOption('--for <time>', `${what}; the node undoes it by itself (20s, 5m; at most 1h)`, duration),
  cut: (command: Command) =>
    command
      .option('--depth <n>', 'levels that are shown', whole(1, 10), 3)
      .option('--bytes <n>', 'bytes of each part that are shown', whole(16, 65_536), 512),
  file: (command: Command, what: string) => command.option('-o, --output <file>', what),
};

/** A length of time with a default, which the help tells as it is written. */
export function timeOption(flags: string, description: string, fallback: string): Option {
  return new Option(flags, description).argParser(duration).default(duration(fallback), fallback);
}

/** For options with few values. */
export function oneOf<T extends string>(...values: readonly T[]): (text: string) => T {
  return (text) => {
    if (!values.includes(text as T)) throw new InvalidArgumentError(`one of: ${values.join(', ')}.`);
    return text as T;
  };
}
