import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import WebSocket from 'ws';
import { BloomConnectionError } from './errors.js';
import type { ServerMessage } from './gen/jellyfish/server_notifications_pb.js';
import {
  ServerMessage_AuthRequestSchema as AuthRequestSchema,
  ServerMessage_EventType as EventType,
  ServerMessageSchema,
  ServerMessage_SubscribeRequestSchema as SubscribeRequestSchema,
  ServerMessage_TrackType as TrackType,
} from './gen/jellyfish/server_notifications_pb.js';
import type { Notification, Track, TrackOwner } from './types.js';

export interface NotificationStreamOptions {
  signal?: AbortSignal;
  /** Called once the server has confirmed the subscription: what happens after this is in the stream. */
  onSubscribed?: () => void;
  /** How long the server may be silent before the connection counts as lost; default 75,000 ms. It pings every 30 s. */
  silenceMs?: number;
}

/** Above this many waiting values the socket is read no further; below half of it, again. */
const maxWaiting = 1000;
const defaultSilenceMs = 75_000;

type Content = ServerMessage['content'];

export function notificationStream(url: URL, token: string, options: NotificationStreamOptions) {
  return stream(url, token, EventType.SERVER_NOTIFICATION, options, toNotification);
}

export function metricsReports(url: URL, token: string, options: NotificationStreamOptions) {
  return stream(url, token, EventType.METRICS, options, (content) =>
    content.case === 'metricsReport' ? (JSON.parse(content.value.metrics) as Record<string, unknown>) : undefined,
  );
}

async function* stream<T>(
  url: URL,
  token: string,
  eventType: EventType,
  options: NotificationStreamOptions,
  read: (content: Content) => T | undefined,
): AsyncIterableIterator<T> {
  const waiting: T[] = [];
  let wake: () => void = () => {};
  let failure: Error | undefined;
  let ended = options.signal?.aborted ?? false;
  if (ended) return;

  const socket = new WebSocket(url, { maxPayload: 16 * 1024 * 1024 });
  const fail = (error: Error) => {
    failure ??= error;
    wake();
  };
  const abort = () => {
    ended = true;
    wake();
  };
  const send = (content: Content) =>
    socket.send(toBinary(ServerMessageSchema, create(ServerMessageSchema, { content })));
  // A server that vanished, or a firewall that forgot the connection, closes nothing.
  const silenceMs = options.silenceMs ?? defaultSilenceMs;
  const silence = setTimeout(() => {
    // What is not read is not heard either.
    if (!socket.isPaused) fail(new BloomConnectionError(`${url.href} has said nothing for ${silenceMs} ms`));
  }, silenceMs);
  // The connection keeps a process running, not the wait for its end.
  silence.unref();
  for (const sign of ['open', 'message', 'ping'] as const) socket.on(sign, () => silence.refresh());
  options.signal?.addEventListener('abort', abort, { once: true });
  socket.on('open', () => send({ case: 'authRequest', value: create(AuthRequestSchema, { token }) }));
  socket.on('error', (cause) => fail(new BloomConnectionError(`${url.href}: ${cause.message}`, { cause })));
  socket.on('close', (code, reason) =>
    fail(new BloomConnectionError(`${url.href} closed the connection: ${reason.toString() || `code ${code}`}`)),
  );
  socket.on('message', (data: Buffer) => {
    try {
      const { content } = fromBinary(ServerMessageSchema, data);
      if (content.case === 'authenticated') {
        send({ case: 'subscribeRequest', value: create(SubscribeRequestSchema, { eventType }) });
      } else if (content.case === 'subscribeResponse') {
        options.onSubscribed?.();
      } else {
        const value = read(content);
        if (value === undefined) return;
        waiting.push(value);
        if (waiting.length >= maxWaiting) socket.pause();
        wake();
      }
    } catch (cause) {
      fail(new BloomConnectionError(`${url.href} sent a message that cannot be read`, { cause }));
    }
  });

  try {
    while (!ended) {
      const next = waiting.shift();
      if (next !== undefined) {
        if (socket.isPaused && waiting.length <= maxWaiting / 2) {
          socket.resume();
          silence.refresh();
        }
        yield next;
      } else if (failure) {
        throw failure;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    clearTimeout(silence);
    options.signal?.removeEventListener('abort', abort);
    socket.removeAllListeners('close');
    socket.on('error', () => {});
    socket.terminate();
  }
}

interface WireTrackEvent {
  roomId: string;
  endpointInfo: { case: 'peerId' | 'componentId'; value: string } | { case: undefined; value?: undefined };
  track?: { id: string; type: TrackType; metadata: string } | undefined;
}

function toNotification(content: Content): Notification | undefined {
  switch (content.case) {
    case 'roomCreated':
    case 'roomDeleted':
    case 'roomCrashed':
    case 'hlsUploaded':
    case 'hlsUploadCrashed':
      return { type: content.case, roomId: content.value.roomId };
    case 'peerAdded':
    case 'peerDeleted':
    case 'peerConnected':
    case 'peerDisconnected':
      return { type: content.case, roomId: content.value.roomId, peerId: content.value.peerId };
    case 'peerCrashed': {
      const { roomId, peerId, reason } = content.value;
      return { type: content.case, roomId, peerId, reason };
    }
    case 'peerMetadataUpdated': {
      const { roomId, peerId, metadata } = content.value;
      return { type: content.case, roomId, peerId, metadata: JSON.parse(metadata) };
    }
    case 'componentCrashed':
    case 'hlsPlayable':
      return { type: content.case, roomId: content.value.roomId, componentId: content.value.componentId };
    case 'trackAdded':
    case 'trackRemoved':
    case 'trackMetadataUpdated':
      return { type: content.case, ...trackEvent(content.value) };
    default:
      // A newer server may know events that this version does not.
      return undefined;
  }
}

function trackEvent(event: WireTrackEvent): { roomId: string; owner: TrackOwner; track: Track } {
  const { endpointInfo, track } = event;
  return {
    roomId: event.roomId,
    owner:
      endpointInfo.case === 'componentId' ? { componentId: endpointInfo.value } : { peerId: endpointInfo.value ?? '' },
    track: {
      id: track?.id ?? '',
      type: track?.type === TrackType.AUDIO ? 'audio' : 'video',
      metadata: track ? JSON.parse(track.metadata) : null,
    },
  };
}
