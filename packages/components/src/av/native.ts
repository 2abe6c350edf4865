/** The native library, loaded only in forked processes. */
import { createRequire } from 'node:module';
import type * as Constants from 'node-av/constants';
import type * as Lib from 'node-av/lib';

export interface Native {
  lib: typeof Lib;
  constants: typeof Constants;
}

/** Returns true if Node.js can resolve the library, an optional dependency. */
export function nativeInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve('node-av/lib');

    return true;
  } catch {
    return false;
  }
}

/** @throws Error when the library is not installed for this platform */
export async function loadNative(): Promise<Native> {
  const [lib, constants] = await Promise.all([import('node-av/lib'), import('node-av/constants')]);
  lib.Log.setLevel(constants.AV_LOG_FATAL);

  return { lib, constants };
}
