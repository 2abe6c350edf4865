import type { Readable } from 'node:stream';

export interface OutStream {
  write(text: string | Uint8Array, done?: () => void): boolean;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** What the program needs from its machine. Tests pass in their own. */
export interface Machine {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly cwd: string;
  readonly temporaryPath: string;
  /** User id; undefined on systems without user ids. */
  readonly uid: number | undefined;
  readonly hostname: string;
  /** IPv4 addresses of this machine, except loopback. */
  readonly addresses: readonly string[];
  readonly user: string;
  readonly pid: number;
  readonly stdin: Readable & { readonly isTTY?: boolean | undefined };
  readonly stdout: OutStream;
  readonly stderr: OutStream;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves on Ctrl-C. A command that reads this must end by itself; otherwise the process ends. */
  readonly interrupted: Promise<void>;
}
