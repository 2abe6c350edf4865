import { randomBytes } from 'node:crypto';
import { isLong } from '@bloom/distribution';
import type { Machine } from '../machine.js';

/** Returns `bloomctl-<pid>-<random>@<host>`, with a long or short host like the target's. It is not registered. */
export function ownName(machine: Pick<Machine, 'pid' | 'hostname' | 'addresses'>, target: string): string {
  const long = isLong(target.slice(target.indexOf('@') + 1));
  const short = machine.hostname.split('.')[0] ?? '';
  const host = long
    ? isLong(machine.hostname)
      ? machine.hostname
      : (machine.addresses[0] ?? '127.0.0.1')
    : short === ''
      ? 'localhost'
      : short;
  return `bloomctl-${machine.pid}-${randomBytes(3).toString('hex')}@${host}`;
}
