// Part of `npm run check`: the diffs of docs/guide/extending.md still fit the tree. Lines that a diff removes or shows
// around a change exist, and so do the files, and the names behind "in".
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { report, root } from './modules.mjs';

const PAGE = 'docs/guide/extending.md';

/** Returns the sources with a path that ends with the label; those that the recipe lists come first. */
function filesOf(label, listed, paths) {
  const isMeant = (path) => path === label || path.endsWith(`/${label}`);

  return [...listed.filter(isMeant), ...paths.filter(isMeant)];
}

/** Turns a line of a diff into a pattern; `...` stands for anything. */
function patternOf(line) {
  const literal = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replace(/\s+/g, '\\s+');

  return new RegExp(line.trim().split('...').map(literal).join('[\\s\\S]*?'));
}

/**
 * Returns the mismatches of a page's recipes. `paths` are those of all sources; `read` returns the text of one,
 * undefined if it does not exist.
 */
export function staleRecipes(page, paths, read) {
  const problems = [];
  for (const recipe of page.split(/^## /m).slice(1)) {
    const [title] = recipe.split('\n');
    const complain = (what) => problems.push(`${PAGE}, ${title}: ${what}`);
    const rows = recipe.split('\n').filter((line) => line.startsWith('|'));
    const listed = rows.flatMap((row) =>
      [...row.split('|')[1].matchAll(/`([\w-]+(?:\/[\w.-]+)+)`/g)].map(([, path]) => path),
    );

    for (const [, diff] of recipe.matchAll(/^```diff\n([\s\S]*?)^```/gm)) {
      let text;
      for (const line of diff.split('\n').filter((each) => each !== '')) {
        const [, label, place] = /^ \/\/ ([\w./-]+\.\w+)(.*)$/.exec(line) ?? [];
        if (label !== undefined) {
          const found = filesOf(label, listed, paths);
          text = found.map(read).find((each) => each !== undefined);
          if (found.length === 0) complain(`there is no ${label}`);
          for (const [, name] of place.matchAll(/\bin (\w+)/g))
            if (text !== undefined && !text.includes(name)) complain(`${label} has no ${name}`);
        } else if (!line.startsWith('+') && !patternOf(line.slice(1)).test(text ?? ''))
          complain(`no file has "${line.slice(1).trim()}"`);
      }
    }
  }

  return problems;
}

function* sources(folder) {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      if (!['node_modules', 'dist'].includes(entry.name)) yield* sources(path);
    } else yield path;
  }
}

if (process.argv[1] === import.meta.filename) {
  const read = (path) => (existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : undefined);
  report(staleRecipes(read(PAGE), [...sources('packages'), ...sources('apps')], read));
}
