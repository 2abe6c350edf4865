/** Upgrades to a websocket: version 1 of the signalling, and version 0, in which clients open two connections. */
export const SIGNAL_PATHS = ['/rtc/v1', '/rtc'] as const;
const [, OLD_PATH] = SIGNAL_PATHS;
/** Says whether a join would be let in. */
const VALIDATE = '/validate';

/** What a request of a client is about. */
export interface Target {
  pathname: string;
  searchParams: URLSearchParams;
  /** Version 0 of the signalling. */
  isOld: boolean;
}

/** Returns the parameters and the path of a request, without the prefix of a proxy that sends the whole URL. */
export function targetOf(url: string): Target {
  const target = url.replace(/^https?:\/\/[^/?]*/i, '');
  const [path = '', query = ''] = target.split(/\?(.*)/s, 2);
  const pathname = path.replace(/(?<=.)\/$/, '');
  const searchParams = new URLSearchParams(query);
  // The Go SDK sends the request of version 1 to the path of version 0.
  const isOld = isOf(OLD_PATH, pathname) && !searchParams.has('join_request');

  return { pathname, searchParams, isOld };
}

/** Returns true for the path of an upgrade, and of the check before one. */
export function isSignalPath(pathname: string): boolean {
  return SIGNAL_PATHS.some((path) => isOf(path, pathname));
}

function isOf(path: string, pathname: string): boolean {
  return pathname === path || pathname === `${path}${VALIDATE}`;
}
