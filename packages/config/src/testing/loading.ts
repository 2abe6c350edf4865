// Loads settings from an environment on a machine with fixed properties.
import { expect } from '@jest/globals';
import { ConfigError } from '../errors.js';
import { loadConfig, type Machine } from '../load-config.js';
import type { Environment } from '../reader.js';

const machine: Machine = {
  cwd: '/srv/app',
  hostname: 'media1.example.com',
  cores: 6,
  randomBytes: (n) => Buffer.alloc(n, 7),
  readFile: () => {
    throw new Error('ENOENT: no such file');
  },
};

export function load(env: Environment = {}) {
  return loadConfig(env, machine);
}

export function settings(env: Environment = {}) {
  return load(env).settings;
}

export function failure(env: Environment): ConfigError {
  try {
    load(env);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error(`${JSON.stringify(env)} was accepted`);
}

/** Expects startup to fail with a message that names the variable and the offending value. */
export function rejects(name: string, values: readonly string[], others: Environment = {}): void {
  for (const value of values) {
    const error = failure({ ...others, [name]: value });
    expect(error.variable).toBe(name);
    expect(error.message).toContain(`${name}=${JSON.stringify(value)}`);
  }
}
