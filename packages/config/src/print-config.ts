import { MASK } from './errors.js';
import type { LoadedConfig } from './load-config.js';
import { aliasOf, type EffectiveValue } from './reader.js';

/** Renders the effective settings as a table with one variable per line and its origin. Masks secrets. */
export function printConfig(loaded: Pick<LoadedConfig, 'values' | 'settings'>): string {
  const width = Math.max(...loaded.values.map((value) => value.name.length));
  const values = loaded.values.map((value) => [value.name.padEnd(width), shown(value), originText(value)] as const);
  const valueWidth = Math.min(48, Math.max(...values.map(([, text]) => text.length)));
  const lines = values.map(([name, text, origin]) => `${name}  ${text.padEnd(valueWidth)}  ${origin}`);

  return [`profile: ${loaded.settings.profile} (NODE_ENV)`, ...lines].join('\n');
}

function shown(value: EffectiveValue): string {
  if (value.value === undefined) return '-';
  if (value.secret) return MASK;

  // Quoted when empty or not printable ASCII, so that each variable stays on one line.
  return /^[\x21-\x7e]+( [\x21-\x7e]+)*$/.test(value.value) ? value.value : JSON.stringify(value.value);
}

function originText(value: EffectiveValue): string {
  return value.origin === 'alias' ? `${aliasOf(value.name)}` : value.origin;
}
