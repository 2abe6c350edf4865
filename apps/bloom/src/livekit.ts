/** The face for LiveKit's clients, loaded only where it is enabled. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Settings } from '@bloom/config';
import type { UpgradeHandler } from '@bloom/http-api';
import type * as Livekit from '@bloom/livekit';
import type { Log } from '@bloom/log';
import { networkOf } from '@bloom/net';
import type { CreatePeerSession, RoomService } from '@bloom/rooms';
import { createPeerSession } from '@bloom/signaling';
import { createHttpSession } from '@bloom/whip';
import { VERSION } from './welcome.js';

/** Limit on a request's header, large enough for a client's join. */
const MAX_HEADER_BYTES = 64 * 1024;

export type LivekitModule = typeof Livekit;

/** Loads the face if there are keys for it. */
export async function loadLivekit({ livekit }: Settings): Promise<LivekitModule | undefined> {
  return livekit === null ? undefined : import('@bloom/livekit');
}

/** Returns the factory of peer sessions, by the kind of client. */
export function sessionsOf(livekit: LivekitModule | undefined): CreatePeerSession {
  return (client) => {
    if (client.client === 'sdk') return createPeerSession(client);
    if (client.client === 'http') return createHttpSession(client);
    // Only a member with different settings accepts such a client.
    if (livekit === undefined) throw new Error('JF_LIVEKIT_KEYS is not set on this node');

    return livekit.createLivekitSession(client);
  };
}

/** What the face adds to a node's listener. */
export interface LivekitDoors {
  upgrades: Record<string, UpgradeHandler>;
  maxHeaderSize: number;
  /** Serves a request of the face; returns false for others. */
  handle: (request: IncomingMessage, response: ServerResponse) => boolean;
  close: () => Promise<void>;
}

/** Opens the face if it is enabled. */
export function openLivekit(
  livekit: LivekitModule | undefined,
  { settings, rooms, log }: { settings: Settings; rooms: RoomService; log: Log },
): LivekitDoors | undefined {
  if (livekit === undefined || settings.livekit === null) return undefined;
  const { keys, ...defaults } = settings.livekit;
  const face = new livekit.LivekitFace({
    rooms,
    keys,
    defaults,
    log,
    nodeId: settings.cluster?.nodeName ?? settings.http.host,
    release: VERSION,
  });

  return {
    upgrades: Object.fromEntries(
      livekit.SIGNAL_PATHS.map((path): [string, UpgradeHandler] => [path, (upgrade) => face.handleUpgrade(upgrade)]),
    ),
    maxHeaderSize: MAX_HEADER_BYTES,
    handle: (request, response) => face.handle(request, response, networkOf(request.socket.remoteAddress ?? '')),
    close: () => face.close(),
  };
}
