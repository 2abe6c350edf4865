import type { Environment } from './reader.js';
import type { ConfigWarning } from './settings.js';
import { REPLACED_NAMES, SILENT_NAMES, VARIABLES } from './variables.js';

const KNOWN = Object.values(VARIABLES).map((variable) => variable.name as string);

/** Returns the Levenshtein distance, or `limit + 1` once it exceeds `limit`. */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;

  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    let least = i;

    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const cost = Math.min(replaced, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      row.push(cost);
      least = Math.min(least, cost);
    }
    if (least > limit) return limit + 1;
    previous = row;
  }

  return previous[b.length] ?? limit + 1;
}

/** Returns a hint for each `JF_` or `FJ_` name that is an alias, not read here, or unknown but close to a known one. */
export function nameHints(env: Environment): ConfigWarning[] {
  const warnings: ConfigWarning[] = [];

  for (const name of Object.keys(env)) {
    if (!/^(JF|FJ)_/.test(name) || name.length > 64) continue;

    const canonical = `JF_${name.slice(3)}`;
    if (KNOWN.includes(canonical)) {
      if (name !== canonical) warnings.push({ variable: canonical, message: aliasMessage(name, canonical, env) });
      continue;
    }
    if (SILENT_NAMES.includes(canonical)) continue;

    const replacement = REPLACED_NAMES.get(canonical);
    if (replacement !== undefined) {
      warnings.push({ variable: name, message: `${name} is not read: ${replacement}` });
      continue;
    }

    // Up to a third of the name after the prefix may be wrong, but no more than three letters.
    const near = nearest(canonical, KNOWN, Math.min(3, Math.floor((canonical.length - 3) / 3)));
    if (near !== undefined) {
      warnings.push({ variable: name, message: `${name} is not known and has no effect; did you mean ${near}?` });
    }
  }

  return warnings;
}

function aliasMessage(alias: string, canonical: string, env: Environment): string {
  return env[canonical] === undefined
    ? `${alias} is read as ${canonical}`
    : `${alias} has no effect because ${canonical} is set`;
}

/** Returns the known name closest to `name`; undefined if all differ in more than `limit` letters. */
export function nearest(name: string, names: Iterable<string>, limit: number): string | undefined {
  let best: { name: string; distance: number } | undefined;

  for (const known of names) {
    const distance = editDistance(name, known, limit);
    if (distance > limit) continue;
    // At equal distance, a truncated name is more likely than a wrong letter.
    const isNearer =
      best === undefined ||
      distance < best.distance ||
      (distance === best.distance && known.startsWith(name) && !best.name.startsWith(name));
    if (isNearer) best = { name: known, distance };
  }

  return best?.name;
}
