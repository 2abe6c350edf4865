/** Connects `bloomctl` (docs/guide/debugging.md) to the parts of this node. */
import { randomBytes } from 'node:crypto';
import type { Server } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { connectActors, type ActorSystem, type RemoteActors } from '@bloom/actors';
import { makeFolder } from '@bloom/components';
import { secretValues, type Settings } from '@bloom/config';
import type { DistributionNode } from '@bloom/distribution';
import { openInspection, openLocalServer, type Inspection } from '@bloom/inspection';
import type { Log } from '@bloom/log';
import type { RoomRegistry, RoomHost } from '@bloom/rooms';
import type { MediaEngine } from '@bloom/sfu';
import { registerInspectionFunctions } from './inspection-functions.js';
import { VERSION } from './welcome.js';

export interface InspectionOptions {
  settings: Settings;
  system: ActorSystem;
  /** The cluster, or `Alone`. */
  reached: { node: DistributionNode; remote: RemoteActors; registry?: RoomRegistry };
  /** The rooms of this node. */
  host: RoomHost;
  engine: MediaEngine;
  log: Log;
}

/** Returns undefined with `JF_INSPECTION=off`; the node then answers no questions. */
export async function openNodeInspection({
  settings,
  reached,
  ...parts
}: InspectionOptions): Promise<Inspection | undefined> {
  if (settings.inspection === 'off') return undefined;
  const { node, remote, registry } = reached;
  const startedAt = Math.round(performance.timeOrigin);
  const { gitCommit, inspection: mode } = settings;

  const secrets = secretValues(settings);
  const opening = { ...parts, version: VERSION, gitCommit, startedAt, node, remote, registry, secrets };
  const opened = await openInspection(opening, mode);
  registerInspectionFunctions(opened, remote);

  return opened;
}

/**
 * Opens the socket on which a node answers tools of its user on this machine. Returns undefined with
 * `JF_INSPECTION=off`, on Windows, and if no folder allows a socket, which is logged.
 */
export async function openLocalSocket(settings: Settings, name: string, log: Log): Promise<Server | undefined> {
  const uid = process.getuid?.();
  if (settings.inspection === 'off' || uid === undefined) return undefined;
  const { resourcesPath, runtimePath } = settings;
  await makeFolder(resourcesPath).catch(() => {});
  const opened = await openLocalServer(name, { runtimePath, resourcesPath, temporaryPath: tmpdir(), uid });
  if ('server' in opened) {
    log.debug('inspection.listening', { path: opened.path });
    return opened.server;
  }
  log.warn('inspection.no_socket', { reasons: opened.reasons });

  return undefined;
}

/** A node without a cluster, reachable only by tools on this machine. */
export interface Alone {
  node: DistributionNode;
  remote: RemoteActors;
}

/** Answers tools through a socket. Returns undefined if there is none. */
export async function answerAlone(settings: Settings, system: ActorSystem, log: Log): Promise<Alone | undefined> {
  const [host = ''] = hostname().split('.');
  // The port distinguishes several nodes on one machine.
  const name = `bloom-${settings.http.port}@${host === '' ? 'localhost' : host}`;
  const localServer = await openLocalSocket(settings, name, log);
  if (localServer === undefined) return undefined;
  const remote = connectActors(system, { log });
  // No one can use the cookie and the port mapper: the node has no other listener and dials no other node.
  const cookie = randomBytes(32).toString('hex');
  const node = await remote.start({
    name,
    mode: 'sname',
    cookie,
    listen: false,
    localServer,
    mapper: { port: 0 },
    log,
  });

  return { node, remote };
}
