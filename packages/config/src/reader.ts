import { ConfigError, printableValue } from './errors.js';
import { VARIABLES, type Profile, type ValueOf, type Variable, type VariableKey } from './variables.js';

/** Origin of a value. */
export type Origin = 'environment' | 'alias' | 'default' | 'not read';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Effective value of one variable, for `--print-config`. */
export interface EffectiveValue {
  name: string;
  /** Text of the value; undefined if unset. */
  value: string | undefined;
  origin: Origin;
  secret: boolean;
}

/** Returns the alias of a variable: `JF_X` may also be set as `FJ_X`, its name in later SDK releases. */
export function aliasOf(name: string): string | undefined {
  return name.startsWith('JF_') ? `FJ_${name.slice(3)}` : undefined;
}

/** Reads variables through the table, and records their values and origins. */
export class Reader {
  readonly #env: Environment;
  readonly #profile: Profile;
  readonly #effective = new Map<VariableKey, EffectiveValue>();

  constructor(env: Environment, profile: Profile) {
    this.#env = env;
    this.#profile = profile;
  }

  get isProduction(): boolean {
    return this.#profile === 'production';
  }

  /** Returns the environment's value or the default; undefined if neither exists. */
  read<K extends VariableKey>(key: K): ValueOf<K> | undefined {
    const variable = VARIABLES[key] as unknown as Variable<ValueOf<K>>;
    const found = this.#find(variable);
    const fallback = this.#fallbackOf(variable);
    const text = found?.text ?? fallback;

    this.#record(key, text ?? undefined, found?.origin ?? 'default');
    if (text === null) return undefined;

    const value = variable.grammar.parse(text);
    if (value === undefined) throw invalid(variable, found?.name ?? variable.name, text);

    return value;
  }

  /** Like `read`, for variables that have a default in every profile. */
  get<K extends VariableKey>(key: K): ValueOf<K> {
    const value = this.read(key);
    if (value === undefined) {
      const { name, grammar } = VARIABLES[key];
      throw new ConfigError(name, `${name} is not set: ${grammar.expected} is required`);
    }

    return value;
  }

  /** Returns true if the variable is set, valid or not; for variables that only matter in combination with others. */
  isSet(key: VariableKey): boolean {
    return this.#find(VARIABLES[key] as unknown as Variable<unknown>) !== undefined;
  }

  /** Records a default that the loader computed. */
  computed(key: VariableKey, value: string): void {
    this.#record(key, value, 'default');
  }

  /** Returns every variable of the table, in table order. */
  values(): EffectiveValue[] {
    return (Object.keys(VARIABLES) as VariableKey[]).map(
      (key) =>
        this.#effective.get(key) ?? {
          name: VARIABLES[key].name,
          value: undefined,
          origin: 'not read',
          secret: isSecret(key),
        },
    );
  }

  #find(variable: Variable<unknown>): { text: string; name: string; origin: Origin } | undefined {
    const alias = aliasOf(variable.name);
    const candidates: [string | undefined, Origin][] = [
      [variable.name, 'environment'],
      [alias, 'alias'],
    ];

    for (const [name, origin] of candidates) {
      const given = name === undefined ? undefined : this.#env[name];
      if (name === undefined || given === undefined) continue;
      const text = variable.grammar.trims === true ? trimmed(given) : given;
      if (trimmed(text) !== text) throw soiled(variable, name, text);
      if (text === '' && variable.grammar.emptyIsUnset) continue;

      return { text, name, origin };
    }

    return undefined;
  }

  #fallbackOf(variable: Variable<unknown>): string | null {
    const { fallback } = variable;

    return fallback === null || typeof fallback === 'string' ? fallback : fallback[this.#profile];
  }

  #record(key: VariableKey, value: string | undefined, origin: Origin): void {
    this.#effective.set(key, { name: VARIABLES[key].name, value, origin, secret: isSecret(key) });
  }
}

function isSecret(key: VariableKey): boolean {
  return 'secret' in VARIABLES[key];
}

/** Returns the value without trailing line breaks and without matching quotes around it. */
export function trimmed(text: string): string {
  const line = text.replace(/[\r\n]+$/, '');
  const isQuoted = line.length > 1 && /^["']/.test(line) && line.startsWith(line.at(-1) ?? '');

  return isQuoted ? line.slice(1, -1) : line;
}

function soiled(variable: Variable<unknown>, name: string, text: string): ConfigError {
  const what = /[\r\n]$/.test(text) ? 'ends in a line break' : 'has quotes at both ends';

  return new ConfigError(variable.name, `${name} ${what}, which would be part of its value: write the value alone`);
}

function invalid(variable: Variable<unknown>, name: string, text: string): ConfigError {
  const value = printableValue(text, variable.secret === true);

  return new ConfigError(variable.name, `${name}=${value} is not valid: expected ${variable.grammar.expected}`);
}
