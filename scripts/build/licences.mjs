// Collects the licences of the packages in a bundle: most permit copies only with their text.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup.mjs';

const TEXT = /^(?:licen[cs]e|copying|notice|copyrightnotice)/i;

/**
 * Returns one text with the licence of each package whose modules are among `files`, paths relative to the root.
 * Packages with equal texts share one; those without a file are named with the licence that their manifest states.
 */
export function licencesOf(files) {
  const named = new Map();
  for (const folder of [...new Set(files.map(packageOf))].filter((one) => one !== undefined).toSorted()) {
    const {
      name,
      version,
      license = 'no licence stated',
    } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
    const texts = readdirSync(join(root, folder), { withFileTypes: true })
      .filter((entry) => entry.isFile() && TEXT.test(entry.name))
      .map((entry) => readFileSync(join(root, folder, entry.name), 'utf8').trim());
    const text = texts.join('\n\n');
    named.set(text, [...(named.get(text) ?? []), `${name} ${version} (${license})`]);
  }

  return [...named]
    .map(([text, names]) => `${[...new Set(names)].join('\n')}\n\n${text}`.trim())
    .join(`\n\n${'-'.repeat(80)}\n\n`);
}

/** Returns the folder of the package that a module belongs to; undefined for a module of this repository. */
function packageOf(file) {
  const [found] = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? [];
  if (found === undefined || existsSync(join(root, found, 'package.json'))) return found;

  // Some packages keep modules of their own in a folder of that name.
  const outer = found.lastIndexOf('/node_modules/');

  return outer === -1 ? undefined : packageOf(found.slice(0, outer));
}
