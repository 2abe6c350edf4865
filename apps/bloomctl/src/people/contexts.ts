// Contexts: servers by name, in a file of the user, so that neither address nor token has to be typed. The file holds
// no token, but says where one comes from, so nobody else may write it or read it.
import { mkdir, open, readFile, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { EXIT, Failure } from '../exit.js';
import { serverUrl } from '../outside/server.js';
import type { Machine } from '../machine.js';

/** A server, and where its API token comes from: a file, a command, or the environment if it has neither. */
export interface ServerContext {
  readonly url: string;
  readonly tokenFile?: string;
  readonly tokenCommand?: string;
}

export interface Contexts {
  /** Name of the context in use. */
  readonly current: string | undefined;
  readonly byName: ReadonlyMap<string, ServerContext>;
}

/** Starts with a letter or digit, so that no name is an option, nor a property of every object. */
const NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;
const MAX_FILE_BYTES = 65_536;
const MAX_TEXT = 4_096;

type Place = Pick<Machine, 'env' | 'home' | 'uid' | 'pid'>;

/** Returns the path of the file: below XDG_CONFIG_HOME, by default `~/.config`. */
export function contextsFile({ env, home }: Pick<Machine, 'env' | 'home'>): string {
  const { XDG_CONFIG_HOME: chosen } = env;
  // The XDG specification ignores relative paths.
  const folder = chosen?.startsWith('/') === true ? chosen : join(home, '.config');

  return join(folder, 'bloom', 'contexts.json');
}

/** @throws Failure for a name that no context can have */
export function mustBeName(name: string): void {
  if (NAME.test(name)) return;
  throw new Failure(EXIT.usage, `${JSON.stringify(name)} cannot be the name of a context`, {
    advice: 'use up to 64 letters, digits, dots, hyphens and underscores, with a letter or digit first',
  });
}

/** Reads the contexts; without a file there are none. @throws Failure for a file that cannot be used */
export async function readContexts(place: Place): Promise<Contexts> {
  const path = contextsFile(place);
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { current: undefined, byName: new Map() };
    throw unusable(path, `cannot be read: ${(error as Error).message}`);
  }
  try {
    // Ask the open file: another one may have its path by now.
    const info = await file.stat();
    if (!info.isFile() || info.size > MAX_FILE_BYTES)
      throw unusable(path, `is not a file of at most ${MAX_FILE_BYTES} bytes`);
    if (place.uid !== undefined && info.uid !== place.uid && info.uid !== 0) {
      throw unusable(path, `belongs to user ${info.uid}, who could use it to run commands as you`);
    }
    if ((info.mode & 0o077) !== 0) {
      const mode = (info.mode & 0o777).toString(8).padStart(4, '0');
      throw unusable(path, `has mode ${mode}: users other than its owner can use it`, `chmod 600 ${path}`);
    }
    return parseContexts(await readFile(file, 'utf8'), path);
  } finally {
    await file.close();
  }
}

/** @throws Failure for text that this program did not write */
export function parseContexts(text: string, path: string): Contexts {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw unusable(path, 'is not JSON');
  }
  const { current, contexts } = fieldsOf(value);
  if (typeof contexts !== 'object' || contexts === null || Array.isArray(contexts)) {
    throw unusable(path, 'has no object "contexts"');
  }
  const byName = new Map<string, ServerContext>();
  for (const [name, entry] of Object.entries(contexts)) {
    if (!NAME.test(name)) throw unusable(path, `has a context with the name ${JSON.stringify(name.slice(0, 80))}`);
    byName.set(name, contextOf(entry, `has a context ${name}`, path));
  }
  if (current !== undefined && (typeof current !== 'string' || !byName.has(current))) {
    throw unusable(path, 'says that a context is in use that it does not contain');
  }

  return { current, byName };
}

function contextOf(entry: unknown, whose: string, path: string): ServerContext {
  const { url, tokenFile, tokenCommand } = fieldsOf(entry);
  const isText = (given: unknown): given is string =>
    typeof given === 'string' && given !== '' && given.length <= MAX_TEXT;
  if (!isText(url)) throw unusable(path, `${whose} without "url"`);
  if (tokenFile !== undefined && !isText(tokenFile)) throw unusable(path, `${whose} whose "tokenFile" is not a path`);
  if (tokenCommand !== undefined && !isText(tokenCommand)) {
    throw unusable(path, `${whose} whose "tokenCommand" is not a command`);
  }
  if (tokenFile !== undefined && tokenCommand !== undefined) {
    throw unusable(path, `${whose} with both "tokenFile" and "tokenCommand"`);
  }

  return {
    url: serverUrl(url).href,
    ...(tokenFile === undefined ? {} : { tokenFile }),
    ...(tokenCommand === undefined ? {} : { tokenCommand }),
  };
}

/** Replaces the file as a whole. @throws Failure */
export async function writeContexts({ current, byName }: Contexts, place: Place): Promise<void> {
  const path = contextsFile(place);
  const part = `${path}.${place.pid}.part`;
  const text = `${JSON.stringify({ v: 1, current, contexts: Object.fromEntries(byName) }, null, 2)}\n`;
  if (text.length > MAX_FILE_BYTES) throw unusable(path, 'would become too long: remove contexts that are not needed');
  try {
    for (const folder of [dirname(dirname(path)), dirname(path)]) {
      await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
      });
    }
    // A file or link that somebody else put there must not receive this.
    const file = await open(part, 'wx', 0o600);
    try {
      await file.writeFile(text);
    } finally {
      await file.close();
    }
    await rename(part, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') await rm(part, { force: true }).catch(() => undefined);
    throw unusable(path, `cannot be written: ${(error as Error).message}`);
  }
}

function unusable(path: string, why: string, advice?: string): Failure {
  return new Failure(EXIT.configuration, `the file of contexts ${path} ${why}`, advice === undefined ? {} : { advice });
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
