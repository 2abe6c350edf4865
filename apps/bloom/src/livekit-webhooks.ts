import { randomUUID } from 'node:crypto';
import type { Settings } from '@bloom/config';
import type { WebhookEvents } from '@bloom/livekit';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import { type NotificationBus, OperatorWebhooks } from '@bloom/notifications';
import type { RoomHost } from '@bloom/rooms';
import { awakeClock } from '@bloom/time';
import type { LivekitModule } from './livekit.js';

/** Posts LiveKit's webhooks of this node's rooms. */
export interface LivekitWebhooks {
  /** Reports that the media of a peer is connected for the first time. */
  mediaUp(roomId: string, peerId: string): void;
  /** Reports that a room has moved to this node, or away from it. */
  moved(way: 'here' | 'away', roomId: string): void;
  /** Events waiting or being sent. */
  readonly pending: number;
  /** Sends pending events for at most `timeoutMs`. */
  close(options: { timeoutMs: number }): Promise<void>;
}

export interface LivekitWebhooksParts {
  livekit: LivekitModule | undefined;
  settings: Settings;
  bus: NotificationBus;
  host: () => RoomHost;
  log: Log;
  metrics: Metrics;
}

/** Returns undefined if the operator wants no such webhooks. */
export function openLivekitWebhooks(parts: LivekitWebhooksParts): LivekitWebhooks | undefined {
  const { livekit, settings, bus, host, log, metrics } = parts;
  const { keys, webhooks } = settings.livekit ?? {};
  const key = keys?.find((each) => each.key === webhooks?.key);
  if (livekit === undefined || webhooks === undefined || webhooks.urls.length === 0 || key === undefined)
    return undefined;

  const events = new livekit.WebhookEvents({
    view: (roomId) => host().view(roomId),
    createdAt: (roomId) => host().createdAt(roomId),
    describedPeers: (roomId) => host().describedPeers(roomId),
    clientOf: (roomId, peerId) => host().clientOf(roomId, peerId),
  });
  const headers = (body: Uint8Array): ReturnType<LivekitModule['webhookHeaders']> =>
    livekit.webhookHeaders(body, key, awakeClock);
  const posts = new OperatorWebhooks({ urls: webhooks.urls, headers, log, metrics });
  const send = (roomId: string, each: ReturnType<WebhookEvents['observe']>): void => {
    for (const event of each) {
      event.id = `EV_${randomUUID()}`;
      event.createdAt = BigInt(Math.floor(awakeClock.wall() / 1_000));
      posts.push(roomId, Buffer.from(event.toJsonString()));
    }
  };
  const unsubscribe = bus.subscribe((envelope) => {
    if (envelope.kind !== 'notification' || envelope.source !== 'local') return;
    const { type, roomId } = envelope.notification;
    send(roomId, events.observe(envelope.notification));
    if (type === 'roomDeleted' || type === 'roomCrashed') posts.end(roomId);
  });

  return {
    mediaUp: (roomId, peerId) => send(roomId, events.mediaUp(roomId, peerId)),
    moved: (way, roomId) => {
      if (way === 'here') return events.adopt(roomId);
      events.forget(roomId);
      return posts.end(roomId);
    },
    get pending() {
      return posts.pending;
    },
    close: async (options) => {
      unsubscribe();
      await posts.close(options);
    },
  };
}
