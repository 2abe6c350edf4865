import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { EXIT, Failure } from './exit.js';
import type { Machine } from './machine.js';

/** Cookie of a node without `JF_DIST_COOKIE`. It is public, so not a secret. */
export const DEFAULT_COOKIE = 'bloom_cookie';
export const COOKIE_FILE = '.bloom-cookie';
const MAX_COOKIE_BYTES = 4_096;

export interface Cookie {
  readonly value: string;
  /** Description of its origin: `~/.bloom-cookie (mode 0600)`. */
  readonly source: string;
}

export interface CookieOptions {
  readonly cookie?: string | undefined;
  readonly cookieFile?: string | undefined;
}

/** Returns the start of a hash, for comparing cookies without showing them. */
export function fingerprint(cookie: string): string {
  return createHash('sha256').update(cookie).digest('hex').slice(0, 4);
}

/**
 * Returns the first of these: `--cookie`, `--cookie-file`, BLOOM_COOKIE, JF_DIST_COOKIE and its alias (for use inside a
 * node's container), ~/.bloom-cookie, a node's default.
 * @throws Failure when a file cannot be used
 */
export async function findCookie(
  options: CookieOptions,
  machine: Pick<Machine, 'env' | 'home' | 'stderr'>,
): Promise<Cookie> {
  if (options.cookie !== undefined) {
    machine.stderr.write(
      'bloomctl: a cookie on the command line can be read by every user of this machine; use a file\n',
    );
    return { value: notEmpty(options.cookie, '--cookie'), source: '--cookie' };
  }
  if (options.cookieFile !== undefined) return await fromFile(options.cookieFile, options.cookieFile);
  for (const name of ['BLOOM_COOKIE', 'JF_DIST_COOKIE', 'FJ_DIST_COOKIE']) {
    const value = machine.env[name];
    if (value !== undefined && value !== '') return { value, source: `the environment (${name})` };
  }
  const path = join(machine.home, COOKIE_FILE);
  const there = await stat(path).then(
    () => true,
    () => false,
  );
  if (there) return await fromFile(path, `~/${COOKIE_FILE}`);
  return { value: DEFAULT_COOKIE, source: 'nowhere, so it is the publicly known default' };
}

async function fromFile(path: string, shown: string): Promise<Cookie> {
  let mode: number;
  let text: string;
  try {
    const info = await stat(path);
    mode = info.mode & 0o777;
    if (!info.isFile() || info.size > MAX_COOKIE_BYTES) {
      throw new Failure(
        EXIT.configuration,
        `the cookie file ${shown} is not a file of at most ${MAX_COOKIE_BYTES} bytes`,
      );
    }
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(EXIT.configuration, `the cookie file ${shown} cannot be read: ${(error as Error).message}`);
  }
  const octal = mode.toString(8).padStart(4, '0');
  if ((mode & 0o077) !== 0) {
    throw new Failure(
      EXIT.configuration,
      `the cookie file ${shown} has mode ${octal}: users other than its owner can read it`,
      { advice: `chmod 600 ${shown}` },
    );
  }
  return { value: notEmpty(text.trim(), shown), source: `${shown} (mode ${octal})` };
}

function notEmpty(value: string, where: string): string {
  if (value === '') throw new Failure(EXIT.configuration, `the cookie of ${where} is empty`);
  return value;
}
