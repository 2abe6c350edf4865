/** Entry of a media worker: one `MediaCore` behind the message port of its thread. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Log, LogFields } from '@bloom/log';
import { type RelayStream, warmUpJoins } from '@bloom/webrtc';
import type { FrameFeed } from '../forwarding/frame-feed.js';
import type { FrameTap } from '../forwarding/frame-tap.js';
import type { ForwardingRoom } from '../forwarding/room.js';
import { MediaError } from '../media-error.js';
import type { TapEvent } from '../media-frames.js';
import { MediaCore } from './media-core.js';
import { ThreadProfile } from './thread-profile.js';
import { warmUp } from './warm-up.js';
import {
  asBuffer,
  type FromWorker,
  type LogMethod,
  ownFrame,
  type ToWorker,
  toPlainError,
  type WorkerSettings,
} from './worker-protocol.js';

/** From here on the cost of a handshake hardly falls any more. */
const WARM_UP_JOINS = 80;

const parent = parentPort!;
const settings = workerData as WorkerSettings;

function post(message: FromWorker, transfer: ArrayBuffer[] = []): void {
  parent.postMessage(message, transfer);
}

function remoteLog(bound: LogFields): Log {
  const write =
    (method: LogMethod) =>
    (event: string, fields: LogFields = {}) =>
      post({ type: 'log', method, event, fields: { ...bound, ...plain(fields) } });
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => remoteLog({ ...bound, ...plain(fields) }),
  };
}

/** Fields that a structured clone would refuse, or would rob of their code. */
function plain(fields: LogFields): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      value instanceof Error ? { ...toPlainError(value), stack: value.stack } : value,
    ]),
  );
}

const rooms = new Map<number, ForwardingRoom>();
const streams = new Map<number, RelayStream>();
const feeds = new Map<number, FrameFeed>();
const taps = new Map<number, FrameTap>();
const profile = new ThreadProfile();

function roomOf(number: number): ForwardingRoom {
  const room = rooms.get(number);
  if (room === undefined) throw new MediaError('CLOSED', 'the room is closed');
  return room;
}

function handle(core: MediaCore, message: ToWorker): unknown {
  switch (message.type) {
    case 'openRoom': {
      const { room, roomId } = message;
      rooms.set(
        room,
        core.openRoom(roomId, (event) => post({ type: 'event', room, event })),
      );
      return;
    }
    case 'closeRoom': {
      const room = rooms.get(message.room);
      rooms.delete(message.room);
      if (room !== undefined) core.closeRoom(room.roomId);
      return;
    }
    case 'openTransport':
      return rooms.get(message.room)?.openTransport(message.peerId, message.relay, message.transport);
    case 'negotiate':
      return roomOf(message.room).negotiate(message.peerId, message.negotiation);
    case 'closeTransport':
      return rooms.get(message.room)?.closeTransport(message.peerId);
    case 'setTargetVariant':
      return rooms.get(message.room)?.setTargetVariant(message.peerId, message.trackId, message.variant);
    case 'setTrackBitrates':
      return rooms.get(message.room)?.setTrackBitrates(message.trackId, message.bitratesBps);
    case 'setTrackMuted':
      return rooms.get(message.room)?.setTrackMuted(message.trackId, message.muted);
    case 'openFeed': {
      const { room, feed, options } = message;
      const keyFrameWanted = (): void => post({ type: 'feedKeyFrame', room, feed });
      const opened = rooms.get(room)?.openFeed({ ...options, keyFrameWanted });
      if (opened !== undefined) feeds.set(feed, opened);
      return;
    }
    case 'feedFrame':
      return feeds.get(message.feed)?.send(message.frame);
    case 'closeFeed': {
      const feed = feeds.get(message.feed);
      feeds.delete(message.feed);
      if (feed !== undefined) rooms.get(message.room)?.closeFeed(feed);
      return;
    }
    case 'openTap': {
      const { room, tap, trackId } = message;
      const opened = rooms.get(room)?.openTap(trackId, (event) => postTapEvent(room, tap, event));
      if (opened !== undefined) taps.set(tap, opened);
      return;
    }
    case 'tapConsumed':
      return taps.get(message.tap)?.consumed(message.frames, message.bytes);
    case 'tapKeyFrame':
      return taps.get(message.tap)?.requestKeyFrame();
    case 'closeTap': {
      const tap = taps.get(message.tap);
      taps.delete(message.tap);
      if (tap !== undefined) rooms.get(message.room)?.closeTap(tap);
      return;
    }
    case 'capturePackets':
      return roomOf(message.room).capturePackets(message.peerId, message.end);
    case 'roomStats':
      return roomOf(message.room).stats();
    case 'stats':
      return core.stats();
    case 'profile':
      if (message.action === 'stop') return profile.stop();
      if (message.action === 'cancel') return profile.cancel();
      return profile.start(message.action);
    case 'relayOpen':
      streams.set(message.stream, openRelay(core, message.stream, message));
      return;
    case 'relayFrame':
      streams.get(message.stream)?.receive(asBuffer(message.frame));
      return;
    case 'relayClosed':
      streams.get(message.stream)?.closed();
      streams.delete(message.stream);
      return;
    case 'close':
      void core.close().then(() => parent.close());
      return;
  }
}

function postTapEvent(room: number, tap: number, event: TapEvent): void {
  if (event.type !== 'frame') return post({ type: 'tapEvent', room, tap, event });
  const data = ownFrame(event.frame.data);
  post({ type: 'tapEvent', room, tap, event: { type: 'frame', frame: { ...event.frame, data } } }, [data.buffer]);
}

function openRelay(core: MediaCore, stream: number, { address, port }: { address: string; port: number }): RelayStream {
  return core.port.attachStream({
    address,
    port,
    // What the client does not read is dropped by the main thread, which owns the socket.
    send: (bytes) => {
      const frame = ownFrame(bytes);
      post({ type: 'relayFrame', stream, frame }, [frame.buffer]);
      return true;
    },
    close: () => {
      streams.delete(stream);
      post({ type: 'relayEnd', stream });
    },
  });
}

try {
  warmUp();
  warmUpJoins(settings.certificate, WARM_UP_JOINS);
  const { nonceSecret, ...rest } = settings;
  const core = await MediaCore.open({ ...rest, nonceSecret: asBuffer(nonceSecret), log: remoteLog({}) });
  parent.on('message', (message: ToWorker) => {
    const call = 'call' in message ? message.call : undefined;
    try {
      const value = handle(core, message);
      if (call !== undefined) post({ type: 'reply', call, value });
    } catch (error) {
      if (call !== undefined) post({ type: 'reply', call, error: toPlainError(error) });
      else remoteLog({}).error('media.command_failed', { command: message.type, error });
    }
  });
  post({ type: 'ready', port: core.port.port });
} catch (error) {
  post({ type: 'failed', error: toPlainError(error) });
}
