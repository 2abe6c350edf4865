import { randomBytes } from 'node:crypto';
import { isLong } from '@bloom/distribution';
import type { World } from '../world.js';

/** Returns `bloomctl-<pid>-<random>@<host>`, with a long or short host like the target's. It is not registered. */
export function ownName(world: Pick<World, 'pid' | 'hostname' | 'addresses'>, target: string): string {
  const long = isLong(target.slice(target.indexOf('@') + 1));
  const short = world.hostname.split('.')[0] ?? '';
  const host = long
    ? isLong(world.hostname)
      ? world.hostname
      : (world.addresses[0] ?? '127.0.0.1')
    : short === ''
      ? 'localhost'
      : short;
  return `bloomctl-${world.pid}-${randomBytes(3).toString('hex')}@${host}`;
}
