/** Every request, answer and item, by kind. Loaded by nodes and tests; a tool needs the types only. */
import type { z } from 'zod';
import * as actors from './actors.js';
import * as cluster from './cluster.js';
import * as logs from './logs.js';
import * as media from './media.js';
import * as process from './process.js';
import type { RequestKind, StreamKind } from './wire.js';

export const requests = {
  hello: cluster.hello,
  node: cluster.node,
  nodes: cluster.nodes,
  links: cluster.links,
  cluster: cluster.cluster,
  drain: cluster.drain,
  undrain: cluster.undrain,
  'link-cut': cluster.linkCut,
  faults: cluster.faults,
  actors: actors.actors,
  actor: actors.actor,
  state: actors.state,
  mailbox: actors.mailbox,
  hops: actors.hops,
  path: actors.path,
  kill: actors.kill,
  suspend: actors.suspend,
  resume: actors.resume,
  ps: process.ps,
  rooms: media.rooms,
  room: media.room,
  peer: media.peer,
  components: media.components,
  component: media.component,
  load: media.load,
  'placement-explain': media.placementExplain,
  'placement-dry-run': media.placementDryRun,
  logs: logs.logs,
  'log-level': logs.setLogLevel,
} as const satisfies Record<RequestKind, { request: z.ZodType; answer: z.ZodType }>;

export const streams = {
  'cluster-events': cluster.clusterEvents,
  trace: actors.trace,
  top: process.top,
  'log-tail': logs.logTail,
  profile: process.profile,
  pcap: media.pcap,
} as const satisfies Record<StreamKind, { request: z.ZodType; item: z.ZodType }>;
