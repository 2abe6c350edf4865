/** The native library; loaded in forked processes only. */
import { createRequire } from 'node:module';
import type * as Constants from 'node-av/constants';
import type * as Lib from 'node-av/lib';

export interface Native {
  lib: typeof Lib;
  constants: typeof Constants;
}

/** Returns whether Node.js finds the library, which is an optional dependency. */
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
