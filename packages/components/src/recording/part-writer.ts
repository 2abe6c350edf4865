import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';

/** The process that wrote a mark. */
export interface PartWriter {
  host: string;
  pid: number;
  /** Distinguishes processes that had the same number, such as the first one of a container. */
  run: string;
}

/** This process. */
export const THIS_WRITER: PartWriter = { host: hostname(), pid: process.pid, run: randomUUID() };

/** Returns true if the process is certainly gone; nothing is known about processes of other machines. */
export function isGone(writer: PartWriter, own = THIS_WRITER): boolean {
  if (writer.host !== own.host || writer.run === own.run) return false;
  if (writer.pid === own.pid) return true;
  try {
    process.kill(writer.pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/** Returns undefined for a mark of another release, or of unknown form. */
export function writerIn(value: unknown): PartWriter | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { host, pid, run } = value as Partial<PartWriter>;
  if (typeof host !== 'string' || typeof run !== 'string') return undefined;

  return Number.isInteger(pid) && pid! > 0 ? { host, pid: pid!, run } : undefined;
}
