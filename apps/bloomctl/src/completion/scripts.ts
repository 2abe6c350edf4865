// Scripts that complete a command line of bloomctl. They hold the whole table: a shell must not wait for a program.
import { type CompletedCommand, flagsThat } from './table.js';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** Returns the script, to be read by the shell at its start. */
export function completionScript(shell: Shell, table: readonly CompletedCommand[]): string {
  if (shell === 'fish') return fish(table);

  return shell === 'bash' ? bash(table) : zsh(table);
}

function bash(table: readonly CompletedCommand[]): string {
  return `# Completion of bloomctl. In ~/.bashrc: source <(bloomctl completion bash)
_bloomctl() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  local place='' skip='' commands='' options='' word IFS=$' \\t\\n'
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
${walk(table)}
  done
  case $place:$previous in
${choices(table, (values) => `COMPREPLY=($(compgen -W '${values}' -- "$current"))`)}
  esac
  case $previous in
    ${flagsThat('file', table).join('|')})
      compopt -o filenames
      IFS=$'\\n'
      COMPREPLY=($(compgen -f -- "$current"))
      return ;;
    ${flagsThat('value', table).join('|')}) return ;;
  esac
${words(table)}
  [[ $current == -* ]] && commands=$options
  COMPREPLY=($(compgen -W "$commands" -- "$current"))
}
complete -F _bloomctl bloomctl
`;
}

function zsh(table: readonly CompletedCommand[]): string {
  return `#compdef bloomctl
# Completion of bloomctl. In ~/.zshrc, after compinit: source <(bloomctl completion zsh)
_bloomctl() {
  emulate -L zsh
  local current=\${words[CURRENT]} previous=\${words[CURRENT - 1]}
  local place='' skip='' commands='' options='' word
  for word in "\${(@)words[2,CURRENT - 1]}"; do
${walk(table)}
  done
  case $place:$previous in
${choices(table, (values) => `compadd -- ${values}`)}
  esac
  case $previous in
    ${flagsThat('file', table).join('|')}) _files; return ;;
    ${flagsThat('value', table).join('|')}) return ;;
  esac
${words(table)}
  [[ $current == -* ]] && commands=$options
  compadd -- \${=commands}
}
if [[ \${funcstack[1]} == _bloomctl ]]; then _bloomctl "$@"; else compdef _bloomctl bloomctl; fi
`;
}

/** Follows the words of the line to the command that they name, past the values of options. */
function walk(table: readonly CompletedCommand[]): string {
  const places = table.map(({ place }) => place).filter((place) => place !== '');

  return `    if [[ -n $skip ]]; then skip=''; continue; fi
    case $word in ${[...flagsThat('value', table), ...flagsThat('file', table)].join('|')}) skip=1; continue ;; esac
    case $place/$word in ${places.join('|')}) place=$place/$word ;; esac`;
}

function choices(table: readonly CompletedCommand[], complete: (values: string) => string): string {
  const lines = table.flatMap(({ place, options }) =>
    options
      .filter((option) => option.choices.length > 0)
      .map((option) => {
        const patterns = option.flags.map((flag) => `${place}:${flag}`).join('|');
        return `    ${patterns}) ${complete(option.choices.join(' '))}; return ;;`;
      }),
  );

  return lines.join('\n');
}

/** Sets the commands and options that may follow. */
function words(table: readonly CompletedCommand[]): string {
  const lines = table.map(({ place, commands }) => {
    const options = table
      .filter((each) => place === each.place || place.startsWith(`${each.place}/`))
      .flatMap((each) => each.options.flatMap(({ flags }) => flags));
    const names = commands.map(({ name }) => name).join(' ');

    return `    '${place}') commands='${names}' options='${[...new Set(options)].join(' ')}' ;;`;
  });

  return ['  case $place in', ...lines, '  esac'].join('\n');
}

function fish(table: readonly CompletedCommand[]): string {
  const places = table.map(({ place }) => place).filter((place) => place !== '');
  const lines = table.flatMap(({ place, commands, options }) => {
    // Options of the program are accepted everywhere, those of a group by its commands.
    const isAt =
      place === ''
        ? ''
        : ` -n 'string match -q -- ${place} (__bloomctl_place); or string match -q -- "${place}/*" (__bloomctl_place)'`;

    return [
      ...commands.map(
        ({ name, description }) =>
          `complete -c bloomctl -n 'test "$(__bloomctl_place)" = "${place}"' -f -a ${name} -d ${quoted(description)}`,
      ),
      ...options.map(({ flags, takes, choices: values, description }) => {
        const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
        const value = values.length > 0 ? ` -x -a '${values.join(' ')}'` : ARGUMENTS[takes];

        return `complete -c bloomctl${isAt} ${names.join(' ')}${value} -d ${quoted(description)}`;
      }),
    ];
  });

  return `# Completion of bloomctl. In ~/.config/fish/config.fish: bloomctl completion fish | source
function __bloomctl_place
  set -l place ''
  set -l skip ''
  for word in (commandline -opc)[2..]
    if test -n "$skip"
      set skip ''
      continue
    end
    switch $word
      case ${[...flagsThat('value', table), ...flagsThat('file', table)].join(' ')}
        set skip 1
        continue
    end
    switch $place/$word
      case ${places.join(' ')}
        set place $place/$word
    end
  end
  echo $place
end
complete -c bloomctl -f
${lines.join('\n')}
`;
}

const ARGUMENTS = { nothing: '', value: ' -x', file: ' -r -F' } as const;

/** A string that fish takes as it is. */
function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, (character) => `\\${character}`).replaceAll('\n', ' ')}'`;
}
