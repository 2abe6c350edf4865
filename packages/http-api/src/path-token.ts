import type { IncomingMessage } from 'node:http';

/** A file of a stream or a recording, with a token in front of its name. Some clients encode the tilde. */
const WITH_TOKEN = /^(\/(?:hls|recording)\/[^/?]+)\/(?:~|%7e)([^/?]*)(?=\/[^/?])/i;
/** Any part of a path that looks like a token. */
const TOKENS = /\/(?:~|%7e)[^/?]*/gi;

const taken = new WeakMap<IncomingMessage, string>();

/**
 * Removes the token from a path such as `/hls/<room>/~<token>/index.m3u8`, for players that cannot send headers. Must
 * run before anything routes or logs the path.
 */
export function takePathToken(request: IncomingMessage): void {
  const { method, url = '' } = request;
  if (!mayHaveToken(url) || (method !== 'GET' && method !== 'HEAD')) return;
  const match = WITH_TOKEN.exec(url);
  if (match === null) return;
  taken.set(request, match[2] ?? '');
  request.url = `${match[1]}${url.slice(match[0].length)}`;
}

/** Returns the token that was in the path. */
export function pathToken(request: IncomingMessage): string | undefined {
  return taken.get(request);
}

/** Hides tokens in a path that does not name a file, such as one with two tokens. */
export function withoutTokens(path: string): string {
  return mayHaveToken(path) ? path.replace(TOKENS, '/~***') : path;
}

/** A quick test that most paths fail. */
function mayHaveToken(path: string): boolean {
  return path.includes('/~') || path.includes('/%7');
}
