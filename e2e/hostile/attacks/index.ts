import type { Attack } from '../harness/attack.js';
import { bitrates } from './bitrates.js';
import { data } from './data.js';
import { events } from './events.js';
import { http } from './http.js';
import { livekit } from './livekit.js';
import { media } from './media.js';
import { metadata } from './metadata.js';
import { offers } from './offers.js';
import { relay } from './relay.js';
import { sockets } from './sockets.js';
import { transport } from './transport.js';
import { whip } from './whip.js';

/** All attacks, for random selection. */
export const attacks: readonly Attack[] = [
  bitrates,
  data,
  events,
  http,
  livekit,
  media,
  metadata,
  offers,
  relay,
  sockets,
  transport,
  whip,
].flat();
