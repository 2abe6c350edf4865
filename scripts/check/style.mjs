// Part of `npm run lint`: the rules of CONTRIBUTING.md ("Style") that the linter and the formatter cannot check.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { isForTests, readModules, report, root, withoutComments } from './modules.mjs';

const MAX_LINES = 500;
const EVENT = /^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$/;

/** The packet path uses payload formats only through their interface: a codec is one file below `payload-formats`. */
const PACKET_PATH = /packages\/sfu\/src\/forwarding\//;
const registry = readFileSync(join(root, 'packages/rtp/src/payload-formats/payload-formats.ts'), 'utf8');
const codecs = [...registry.matchAll(/^import \{ \w+ \} from '\.\/(\w+)\.js';/gm)].map(([, name]) => name);
const CODEC = new RegExp(`${codecs.join('|')}|\\bnal(?:s|[A-Z]|\\b)|annex-?b`, 'gi');

const problems = [];

for (const { path, group, name, text } of readModules().values()) {
  if (group === 'scripts') continue;
  // Benchmarks are measuring programs, not part of the product.
  const production = !isForTests(path) && (group === 'packages' || group === 'apps') && name !== 'bench';
  const complain = (offset, what) => {
    const line = text.slice(0, offset).split('\n').length;
    problems.push(`${relative(root, path)}:${line}: ${what}`);
  };
  const each = (pattern, check) => {
    for (const match of text.matchAll(pattern)) {
      const what = check(match);
      if (what !== undefined) complain(match.index, what);
    }
  };

  const lines = text.split('\n').length - 1;
  if (lines > MAX_LINES) complain(text.length, `${lines} lines; split it above ${MAX_LINES}`);

  for (const match of withoutComments(text).matchAll(/(?<=^\s*|[(,]\s*)private (?!constructor\b)(?:\w+ )*\w+/gm))
    complain(text.indexOf(match[0]), `'${match[0]}': use #private`);
  each(/^ *(?:\/\*)?\* @throws \{/gm, () => "write '@throws Name', without braces");
  if (!production) continue;

  if (PACKET_PATH.test(path)) each(CODEC, ([codec]) => `'${codec}': the packet path knows no codec`);

  each(/\.#?(?:debug|info|warn|error)\(\s*'([^' ]*\.[^' ]*)'/g, ([, event]) =>
    EVENT.test(event) ? undefined : `log event '${event}' is not area.snake_case`,
  );
  each(
    /^(?:export )?const ([a-z]\w*) = (?:-?[\d_.]+(?: \* [\d_.]+)*|'[^']*');$/gm,
    ([, constant]) => `constant '${constant}' is not SCREAMING_SNAKE`,
  );
  each(/\bmkdir(?:Sync)?\([^)]*\brecursive: true/g, () => 'a recursive mkdir may never end: use makeFolder');
  each(
    /\/\*\*\s+(?:\* )?((?:Of|That|As|For|Whether that)\b[^\n]*)/g,
    ([, start]) => `docstring starts with a fragment: '${start}'`,
  );
}

report(problems);
