/** What `bloomctl` may ask of this node (docs/guide/debugging.md): the node's parts, handed to those that answer. */
import type { ActorSystem } from '@bloom/actors';
import type { Settings } from '@bloom/config';
import { startInspection, type Inspection } from '@bloom/inspection';
import type { Log } from '@bloom/log';
import type { Rooms } from '@bloom/rooms';
import type { MediaEngine } from '@bloom/sfu';
import type { Cluster } from './cluster.js';
import { registerInspectionFunctions } from './inspection-functions.js';
import { version } from './version.js';

export interface InspectionOptions {
  settings: Settings;
  system: ActorSystem;
  cluster: Cluster;
  /** Of this node. */
  rooms: Rooms;
  engine: MediaEngine;
  log: Log;
}

/** undefined with `JF_INSPECTION=off`: nobody answers then. */
export async function openInspection({
  settings,
  cluster,
  ...parts
}: InspectionOptions): Promise<Inspection | undefined> {
  if (settings.inspection === 'off') return undefined;
  const { node, remote, rooms: clusterRooms } = cluster;
  const startedAt = Math.round(performance.timeOrigin);
  const { gitCommit, inspection: mode } = settings;

  const secrets = secretsOf(settings);
  const started = { ...parts, version, gitCommit, startedAt, node, remote, clusterRooms, secrets };
  const opened = await startInspection(started, mode);
  registerInspectionFunctions(opened, remote);

  return opened;
}

/** The settings that must not be shown; what everybody knows from the manual is no secret. */
function secretsOf({ http, cluster, recording, webhooks }: Settings): string[] {
  const { s3 } = recording;
  const values = [
    http.apiToken,
    http.secretKeyBase,
    cluster?.cookie,
    s3?.accessKeyId,
    s3?.secretAccessKey,
    webhooks.secret,
  ];

  return values.filter((value): value is string => typeof value === 'string' && value !== 'development');
}
