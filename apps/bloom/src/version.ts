import { readFileSync } from 'node:fs';

/** Bloom's version, semver. */
export const VERSION = (
  JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
).version;
