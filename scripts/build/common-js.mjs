// CommonJS without esbuild's helpers, which take 200 bytes.
import { compileFunction } from 'node:vm';

const PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname'];
/** What only esbuild's own format can express, or renames. */
const SPECIAL = /^import[ {*]|^(?:\w+ )+(?:exports|require|module)\b/m;

/**
 * Returns an ES module that esbuild has bundled as CommonJS; undefined if only esbuild's own format can express it:
 * with imports, a default export, `import.meta` or a top-level `await`. Exports are copied once, so they must not
 * change. Nothing marks an ES module: a default import gets the whole module, as from any other CommonJS.
 */
export function commonJsOf(text) {
  const list = /\nexport \{\n([^{}]*)\};\n$/.exec(text);
  if (list === null || SPECIAL.test(text)) return undefined;
  const entries = list[1]
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  const names = entries.map((entry) => /^([\w$]+)(?: as ([\w$]+))?$/.exec(entry));
  if (names.some((name) => name === null || name[2] === 'default')) return undefined;
  const exported = names.map(([, own, other]) => `  ${other === undefined ? own : `${other}: ${own}`}`);
  const small = `"use strict";\n${text.slice(0, list.index)}\nmodule.exports = {\n${exported.join(',\n')}\n};\n`;
  try {
    compileFunction(small, PARAMETERS);
  } catch {
    return undefined;
  }

  return small;
}
