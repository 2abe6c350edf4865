/** Connects `bloomctl` (docs/guide/debugging.md) to the parts of this node. */
import type { ActorSystem } from '@bloom/actors';
import type { Settings } from '@bloom/config';
import { startInspection, type Inspection } from '@bloom/inspection';
import type { Log } from '@bloom/log';
import type { LocalRooms } from '@bloom/rooms';
import type { MediaEngine } from '@bloom/sfu';
import type { Cluster } from './cluster.js';
import { registerInspectionFunctions } from './inspection-functions.js';
import { VERSION } from './version.js';

export interface InspectionOptions {
  settings: Settings;
  system: ActorSystem;
  cluster: Cluster;
  /** The rooms of this node. */
  rooms: LocalRooms;
  engine: MediaEngine;
  log: Log;
}

/** Returns undefined with `JF_INSPECTION=off`; questions are then not answered. */
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
  const started = { ...parts, version: VERSION, gitCommit, startedAt, node, remote, clusterRooms, secrets };
  const opened = await startInspection(started, mode);
  registerInspectionFunctions(opened, remote);

  return opened;
}

/** The settings that must not be shown. The development defaults are public in the manual, so they are no secrets. */
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
