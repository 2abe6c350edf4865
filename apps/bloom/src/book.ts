import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Fallback } from '@bloom/http-api';
import express, { type Response } from 'express';

/** Where `npm run book` writes the book, beside `apps`. */
const FOLDER = join(dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url))))), 'dist', 'book');

/** The pages run only their own scripts and load nothing from elsewhere. TypeDoc sets style attributes. */
const HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/**
 * Returns a handler that serves the book below `/book/`, and leaves other requests to `otherwise`. Nothing is read
 * before the first request, so a book may be built while the node runs.
 */
export function bookFiles(otherwise: Fallback | undefined, folder = FOLDER): Fallback {
  const router = express.Router({ caseSensitive: true, strict: true });
  // The addresses in its pages are relative to the slash.
  router.get('/book', (_request, response) => {
    response.writeHead(302, { ...HEADERS, location: 'book/' }).end();
  });
  router.use(
    '/book/',
    express.static(folder, {
      fallthrough: true,
      redirect: false,
      dotfiles: 'ignore',
      // File names stay the same when the content changes.
      setHeaders: (response: Response) => response.set({ ...HEADERS, 'cache-control': 'no-cache' }),
    }),
  );
  router.get('/book/', (_request, response) => {
    response.writeHead(404, { ...HEADERS, 'content-type': 'text/plain; charset=utf-8' });
    response.end('The book is not built on this node: npm run book\n');
  });
  if (otherwise !== undefined) router.use(otherwise as express.RequestHandler);

  return router as unknown as Fallback;
}
