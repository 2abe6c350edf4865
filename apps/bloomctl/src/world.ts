import type { Readable } from 'node:stream';

export interface OutStream {
  write(text: string | Uint8Array, done?: () => void): boolean;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** What the program takes from the machine it runs on; a test hands in its own. */
export interface World {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly hostname: string;
  /** Of the interfaces of this machine, IPv4, loopback left out. */
  readonly addresses: readonly string[];
  readonly user: string;
  readonly pid: number;
  readonly stdin: Readable & { readonly isTTY?: boolean | undefined };
  readonly stdout: OutStream;
  readonly stderr: OutStream;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves when the user wants to end it: Ctrl-C. Whoever asks for it ends by itself then; else the process does. */
  readonly interrupted: Promise<void>;
}
