import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Fallback } from '@bloom/http-api';
import express from 'express';

/** The built page: apps/dashboard/dist beside this app. */
const folder = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), 'dashboard', 'dist');

/** Serves the page to try Bloom with; undefined when it has not been built. */
export function pageFiles(): Fallback | undefined {
  if (!existsSync(join(folder, 'index.html'))) return undefined;
  // What is no file of the page goes on to the API.
  return express.static(folder, { fallthrough: true, redirect: false, dotfiles: 'ignore' }) as unknown as Fallback;
}
