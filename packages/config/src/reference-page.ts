import { VARIABLES, type Profile, type Section, type Variable } from './variables.js';

const INTRODUCTION = `# Configuration

<!-- Generated from packages/config/src/variables.ts by \`npm run generate:config\`; do not edit. -->

Bloom reads its configuration once, at start, from environment variables. An invalid value stops the start with a
message that names the variable and the value. \`npm start -- --print-config\` prints the effective settings, each with
its origin and without secrets.

- **Profile**: \`NODE_ENV=production\` (the container image sets it) is the strict one, \`NODE_ENV=test\` is for tests,
  anything else is development.
- **Aliases**: \`FJ_X\` is read when \`JF_X\` is unset. Unknown names are not an error; a name that nearly matches a known
  one gets a hint in the log.
- **Empty values**: a text, list or choice that is set but empty counts as unset; an empty boolean, number, port range or
  address stops the start.
- **Grammars**: a *boolean* is \`true\` or \`false\` in any letter case; an *ip* is a literal IPv4 or IPv6 address; a *port* is
  1..65535; a *port range* is \`A-B\`; a *node name* is \`<nodename>@<hostname>\`; items of a *list* are separated by single
  spaces.
- **Secrets** (marked with *) are never printed or logged.

\`DOCKER_DEBUG=true\` is read only by the entry point of the container image, which then prints the files whose owner it
changes and the ids that it runs as.
`;

const CLOSING = `## Constants

Not configurable: a peer token without \`ttl\` is valid for 24 hours; websockets are pinged every 30 s after authentication and closed
after about 60 s of silence; raw recordings are checked every 600 s and removed 3,600 s after their last change.
`;

function code(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}

function defaultText(variable: Variable<unknown>): string {
  const { fallback } = variable;

  if (variable.fallbackDoc !== undefined) return variable.fallbackDoc;
  if (fallback === null) return 'unset';
  if (typeof fallback === 'string') return code(fallback);

  const profiles: Profile[] = ['production', 'development', 'test'];
  return profiles
    .map((profile) => `${profile}: ${fallback[profile] === null ? 'unset' : code(fallback[profile] ?? '')}`)
    .join('<br>');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

/** Returns the text of docs/reference/configuration.md. */
export function renderReference(): string {
  const all = Object.values(VARIABLES) as unknown as Variable<unknown>[];
  const sections = [...new Set(all.map((variable) => variable.section))];
  const tables = sections.map((section: Section) => {
    const rows = all
      .filter((variable) => variable.section === section)
      .map(
        (variable) =>
          `| \`${variable.name}\`${variable.secret === true ? ' *' : ''} | ${cell(variable.grammar.name)} | ${cell(defaultText(variable))} | ${cell(variable.doc)} |`,
      );

    return [`## ${section}`, '', '| Variable | Type | Default | Meaning |', '|---|---|---|---|', ...rows, ''].join(
      '\n',
    );
  });

  return [INTRODUCTION, ...tables, CLOSING].join('\n');
}
