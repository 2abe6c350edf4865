import type { Grammar } from './grammar.js';

export type Profile = 'production' | 'development' | 'test';

export interface Variable<T> {
  readonly name: string;
  readonly section: Section;
  readonly grammar: Grammar<T>;
  /** Text used when the variable is unset; null if it stays unset or the loader computes it. */
  readonly fallback: string | null | Readonly<Record<Profile, string | null>>;
  /** Description of the default on the reference page, where `fallback` is not enough. */
  readonly fallbackDoc?: string;
  /** True if the value must never be printed. */
  readonly secret?: true;
  /** Effect of the variable, and when it is read at all. */
  readonly doc: string;
}

export type Section =
  | 'HTTP, identity, security'
  | 'Storage and logging'
  | 'Media'
  | 'Object storage'
  | 'Metrics and webhooks'
  | 'LiveKit'
  | 'Cluster'
  | 'Operation';

/** Returns the declaration, with its type. */
export function variable<T>(declaration: Variable<T>): Variable<T> {
  return declaration;
}
