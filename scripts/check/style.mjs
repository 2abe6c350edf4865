// Part of `npm run lint`: the rules of CONTRIBUTING.md ("Style") that the linter and the formatter cannot check.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { isForTests, readModules, report, root, withoutComments } from './modules.mjs';
import { checkSeams } from './seams.mjs';

const MAX_LINES = 500;
const MIN_LINES = 15;
/** The formatter wraps code here, but not comments. */
const MAX_WIDTH = 120;
const EVENT = /^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$/;

/**
 * Only components and their codecs name a codec: the others ask its payload format, so that a new one is one file below
 * `payload-formats`.
 */
const KNOWS_NO_CODEC =
  /packages\/(?:sfu\/src\/forwarding|webrtc\/src\/sdp|(?:inspection|metrics|negotiation|signaling|whip)\/src)\//;
const registry = readFileSync(join(root, 'packages/rtp/src/payload-formats/payload-formats.ts'), 'utf8');
const [, formats = ''] = /const FORMATS = \{([^}]*)\}/.exec(registry) ?? [];
const REGISTERED = [...formats.matchAll(/(\w+):/g)].map(([, name]) => name);

/** Separates the words of camelCase and snake_case names by hyphens. The `s` of a plural like `NALs` starts no word. */
const words = (line) =>
  line.replace(/_|(?<=[a-z\d])(?=[A-Z])|(?<=\d)(?=[a-z])|(?<=[A-Z\d])(?=[A-Z](?!s\b)[a-z])/g, '-');

/** Returns what breaks a rule. `codecs` are the registered names. */
export function checkStyle(modules, codecs = REGISTERED) {
  const problems = [];
  const names = new RegExp(`\\b(?:${codecs.join('|')}|h\\.?26[45]|vp[89]|av1|nalu?|annex-?b)s?\\b`, 'i');
  for (const { path, group, name, text } of modules.values()) {
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

    each(/^ *(?:\/\/|\/?\*).*$/gm, ([line]) =>
      line.length > MAX_WIDTH ? `a comment of ${line.length} columns; wrap it at ${MAX_WIDTH}` : undefined,
    );
    if (group === 'scripts') continue;

    const lines = text.split('\n').length - 1;
    // Programs and tests export nothing; barrels and declarations have nothing that could join a neighbour.
    const isShared = /^export (?!\*|type \*|(?:type )?\{)/m.test(text) && !path.endsWith('.d.ts');
    if (lines < MIN_LINES && isShared) complain(0, `${lines} lines; join a neighbour below ${MIN_LINES}`);
    if (lines > MAX_LINES) complain(text.length, `${lines} lines; split it above ${MAX_LINES}`);

    for (const match of withoutComments(text).matchAll(/(?<=^\s*|[(,]\s*)private (?!constructor\b)(?:\w+ )*\w+/gm))
      complain(text.indexOf(match[0]), `'${match[0]}': use #private`);
    each(/^ *(?:\/\*)?\* @throws \{/gm, () => "write '@throws Name', without braces");
    if (!production) continue;

    if (KNOWS_NO_CODEC.test(path))
      each(/^.+$/gm, ([line]) => {
        const [codec] = words(line).match(names) ?? [];
        return codec === undefined ? undefined : `'${codec}': ask the payload format instead`;
      });

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

  return problems;
}

if (process.argv[1] === import.meta.filename) {
  const modules = readModules();
  report([...checkSeams(modules), ...checkStyle(modules)]);
}
