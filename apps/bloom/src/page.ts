import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Fallback } from '@bloom/http-api';
import express from 'express';

/** The built page: apps/dashboard/dist beside this app. */
const FOLDER = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), 'dashboard', 'dist');

/** Returns the handler that serves the page to try Bloom with, undefined when it has not been built. */
export function pageFiles(): Fallback | undefined {
  if (!existsSync(join(FOLDER, 'index.html'))) return undefined;
  // Paths without a file fall through to the API.
  return express.static(FOLDER, { fallthrough: true, redirect: false, dotfiles: 'ignore' }) as unknown as Fallback;
}
