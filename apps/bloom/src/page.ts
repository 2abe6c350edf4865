import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Fallback } from '@bloom/http-api';
import express from 'express';

/** The built page, in apps/dashboard/dist beside this app. */
const FOLDER = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), 'dashboard', 'dist');

/**
 * The page runs only its own scripts and in no frame. It connects to any host, because a cluster's rooms are on
 * several. React and the player set style attributes; hls.js creates its worker and its media source from blobs.
 */
const POLICY = [
  "default-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "worker-src 'self' blob:",
  'connect-src *',
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

/** Returns the handler that serves the dashboard, or undefined if the dashboard has not been built. */
export function pageFiles(): Fallback | undefined {
  if (!existsSync(join(FOLDER, 'index.html'))) return undefined;
  // Paths without a file fall through to the API.
  return express.static(FOLDER, {
    fallthrough: true,
    redirect: false,
    dotfiles: 'ignore',
    setHeaders: (response, path) => {
      // Names of built files contain a hash of their content.
      const isBuilt = path.startsWith(join(FOLDER, 'assets'));
      response.setHeader('cache-control', isBuilt ? 'public, max-age=31536000, immutable' : 'no-cache');
      response.setHeader('content-security-policy', POLICY);
      response.setHeader('referrer-policy', 'no-referrer');
      response.setHeader('x-content-type-options', 'nosniff');
    },
  }) as unknown as Fallback;
}
