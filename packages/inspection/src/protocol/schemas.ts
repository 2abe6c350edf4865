/** Every request and stream of the protocol by kind. Loaded by nodes and tests; tools only need the types. */
import * as actors from './actors.js';
import * as cluster from './cluster.js';
import * as logs from './logs.js';
import * as media from './media.js';
import * as process from './process.js';

export const requests = {
  ...cluster.requests,
  ...actors.requests,
  ...process.requests,
  ...media.requests,
  ...logs.requests,
} as const;

export const streams = {
  ...cluster.streams,
  ...actors.streams,
  ...process.streams,
  ...media.streams,
  ...logs.streams,
} as const;
