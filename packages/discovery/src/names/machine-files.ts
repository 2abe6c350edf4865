import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Clock } from '@bloom/time';
import { parseHostsFile } from './hosts-file.js';
import { parseResolvConf, type ResolverConfig } from './resolv-conf.js';

/** Time between two checks for changes. */
const CHECK_MS = 2_000;
const MAX_CONFIG_BYTES = 64 * 1024;
const MAX_HOSTS_BYTES = 1024 * 1024;

export interface MachineFilesOptions {
  readonly resolvConf: string;
  readonly hosts: string;
  readonly clock: Clock;
}

/** This machine's configuration of name resolution. */
export interface MachineNames {
  readonly config: ResolverConfig;
  readonly hosts: ReadonlyMap<string, readonly string[]>;
}

/**
 * Reads resolv.conf and the hosts file again when they have changed, since containers rewrite both. Reads
 * synchronously: the threads that Node reads files with may all hang on a lost volume.
 */
export class MachineFiles {
  readonly #clock: Clock;
  readonly #config: ParsedFile<ResolverConfig>;
  readonly #hosts: ParsedFile<ReadonlyMap<string, readonly string[]>>;
  #checkedAt = -Infinity;

  constructor({ resolvConf, hosts, clock }: MachineFilesOptions) {
    this.#clock = clock;
    this.#config = new ParsedFile(resolvConf, MAX_CONFIG_BYTES, (text) => parseResolvConf(text, hostname()));
    this.#hosts = new ParsedFile(hosts, MAX_HOSTS_BYTES, parseHostsFile);
  }

  /** Returns the same contents until their file changes. */
  read(): MachineNames {
    const now = this.#clock.now();
    if (now - this.#checkedAt >= CHECK_MS) {
      this.#checkedAt = now;
      this.#config.check();
      this.#hosts.check();
    }

    return { config: this.#config.contents, hosts: this.#hosts.contents };
  }
}

class ParsedFile<T> {
  contents: T;
  readonly #path: string;
  readonly #maxBytes: number;
  readonly #parse: (text: string) => T;
  #version = '';

  constructor(path: string, maxBytes: number, parse: (text: string) => T) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    this.#parse = parse;
    this.contents = parse('');
  }

  /** Reads the file if it has changed. */
  check(): void {
    const version = versionOf(this.#path);
    if (version === this.#version) return;
    const text = startOf(this.#path, this.#maxBytes);
    // A file that cannot be opened, for lack of descriptors for example, is read at the next check.
    if (text === undefined) return;
    this.#version = version;
    this.contents = this.#parse(text);
  }
}

function versionOf(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path);
    return `${ino}:${size}:${mtimeMs}`;
  } catch {
    return 'none';
  }
}

/**
 * Returns the first `maxBytes` of a file, without a line that this cuts; empty for a file that does not exist;
 * undefined for one that cannot be read.
 */
function startOf(path: string, maxBytes: number): string | undefined {
  try {
    const file = openSync(path, 'r');
    try {
      const buffer = Buffer.alloc(maxBytes);
      let length = 0;
      for (let read = -1; read !== 0 && length < maxBytes; length += read)
        read = readSync(file, buffer, length, maxBytes - length, null);
      const text = buffer.toString('utf8', 0, length);

      return length < maxBytes ? text : text.slice(0, text.lastIndexOf('\n') + 1);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? '' : undefined;
  }
}
