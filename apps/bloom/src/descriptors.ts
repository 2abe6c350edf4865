/** Shares out the descriptors that the system allows this process: connections of strangers must leave some for media and files. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Log } from '@bloom/log';

/** Below it the limits on connections are lower than documented. */
const ENOUGH = 32_768;
/** Below it they are so low that a large room or a flood of strangers reaches them. */
const FEW = 4_096;
/** Shares of the descriptors that are free at the start. The rest is for files, pipes, and links between nodes. */
const HTTP_SHARE = 0.5;
const RELAY_SHARE = 0.2;

export interface ConnectionLimits {
  /** undefined = the documented limit. */
  http: number | undefined;
  /** Limit of each port of the relay; undefined as above. */
  relay: number | undefined;
}

/** Returns the limits that fit the open-file limit of the process, and logs when they are low. */
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

/** Returns the soft limit of open files; Infinity where the system does not say. Node has raised it to the hard one. */
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
