/** Divides up the file descriptors of this process: connections from strangers must leave some for media and files. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Log } from '@bloom/log';

/** Below this, the connection limits are lower than documented. */
const ENOUGH = 32_768;
/** Below this, a large room or a flood of strangers reaches the connection limits. */
const FEW = 4_096;
/** Shares of the descriptors free at start-up. The rest is for files, pipes, and links between nodes. */
const HTTP_SHARE = 0.5;
const RELAY_SHARE = 0.2;

export interface ConnectionLimits {
  /** undefined: the documented limit. */
  http: number | undefined;
  /** Limit of each relay port; undefined: the documented limit. */
  relay: number | undefined;
}

/** Returns limits that fit the process's open-file limit, and logs when they are low. */
export function connectionLimits(log: Log, { files = openFileLimit(), open = openFiles() } = {}): ConnectionLimits {
  if (files >= ENOUGH) return { http: undefined, relay: undefined };
  const free = Math.max(0, files - open);
  const limits = {
    http: Math.max(1, Math.floor(free * HTTP_SHARE)),
    relay: Math.max(1, Math.floor((free * RELAY_SHARE) / 2)),
  };
  if (files < FEW)
    log.warn('node.few_descriptors', {
      files,
      httpConnections: limits.http,
      fix: `ulimit -n ${ENOUGH}, or LimitNOFILE`,
    });

  return limits;
}

/** Returns the soft limit of open files, raised by Node.js to the hard one; Infinity if the system does not say. */
function openFileLimit(): number {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

function openFiles(): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return 0;
  }
}
