// What a shell needs to complete a command line, read from the definitions of the commands themselves.
import type { Command, Option } from 'commander';

/** A parser that accepts only these texts. */
export interface Choices {
  readonly choices: readonly string[];
}

export interface CompletedOption {
  /** `--limit`, `-o`. */
  readonly flags: readonly string[];
  readonly takes: 'nothing' | 'value' | 'file';
  /** All values, if there are only so many. */
  readonly choices: readonly string[];
  readonly description: string;
}

export interface CompletedCommand {
  /** `''` for the program itself, else `/rooms/create`. */
  readonly place: string;
  /** Also the values of its first argument, if there are only so many. */
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  /** Its own options only: those of the program are accepted everywhere, and those of a group by its commands. */
  readonly options: readonly CompletedOption[];
}

/** Returns the program and all commands below it. */
export function completionTable(program: Command, place = ''): CompletedCommand[] {
  const help = program.createHelp();
  const commands = help.visibleCommands(program);
  const [{ argChoices: values = [], description = '' } = {}] = program.registeredArguments;

  return [
    {
      place,
      commands: [
        ...commands.map((command) => ({ name: command.name(), description: command.description() })),
        ...values.map((name) => ({ name, description })),
      ],
      options: help.visibleOptions(program).map(optionOf),
    },
    // The help command is made up by the library and has nothing below it.
    ...program.commands.flatMap((command) => completionTable(command, `${place}/${command.name()}`)),
  ];
}

function optionOf({ short, long, flags, description, argChoices, parseArg }: Option): CompletedOption {
  const { choices = argChoices ?? [] } = (parseArg ?? {}) as Partial<Choices>;

  return {
    flags: [short, long].filter((flag) => flag !== undefined),
    takes: /[<[]file[>\]]/.test(flags) ? 'file' : /[<[]/.test(flags) ? 'value' : 'nothing',
    choices,
    description,
  };
}

/** Returns the flags that take this. None takes a value in one command and nothing in another: places do not matter. */
export function flagsThat(takes: CompletedOption['takes'], table: readonly CompletedCommand[]): string[] {
  const options = table.flatMap((command) => command.options).filter((option) => option.takes === takes);

  return [...new Set(options.flatMap(({ flags }) => flags))].toSorted();
}
