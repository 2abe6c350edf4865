import { existsSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Fallback } from '@bloom/http-api';
import express from 'express';

/** The built page, in apps/dashboard/dist beside this app. */
const FOLDER = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), 'dashboard', 'dist');

/**
 * The page runs only its own scripts and cannot be framed. It connects to any host, because a cluster's rooms are on
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

const DASHBOARD = 'index.html';
const GUESTS = 'guests.html';

/**
 * Returns the handler that serves the dashboard at `/`, or the page for guests alone; undefined if they have not been
 * built.
 */
export function pageFiles(shown: true | 'guests', folder = FOLDER): Fallback | undefined {
  const [page, hidden] = shown === 'guests' ? [GUESTS, DASHBOARD] : [DASHBOARD, GUESTS];
  if (!existsSync(join(folder, page))) return undefined;
  const files = staticFiles(folder, page);

  // The other page must not be reachable by its name, however that is written: some file systems ignore case, and `url`
  // may be absolute or have a fragment, while the file server uses `path`.
  return (request, response, next) => {
    if (normalPath(request.path).toLowerCase() === `/${hidden}`) next();
    else void files(request, response, next);
  };
}

function normalPath(path: string): string {
  try {
    return posix.normalize(decodeURIComponent(path));
  } catch {
    return path;
  }
}

function staticFiles(folder: string, page: string): Fallback {
  // Paths without a file fall through to the API.
  return express.static(folder, {
    index: page,
    fallthrough: true,
    redirect: false,
    dotfiles: 'ignore',
    setHeaders: (response, path) => {
      // Names of built files contain a hash of their content.
      const isBuilt = path.startsWith(join(folder, 'assets'));
      response.setHeader('cache-control', isBuilt ? 'public, max-age=31536000, immutable' : 'no-cache');
      response.setHeader('content-security-policy', POLICY);
      response.setHeader('referrer-policy', 'no-referrer');
      response.setHeader('x-content-type-options', 'nosniff');
    },
  });
}
