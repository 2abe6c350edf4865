/** Entry point of a media worker: one `MediaCore` behind the message port of its thread. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Log, LogFields } from '@bloom/log';
import { type RelayStream, type RelayStreamOptions, warmUpJoins } from '@bloom/webrtc';
import type { RoomReport } from '../room-command.js';
import { MediaCore } from './media-core.js';
import { ThreadProfile } from './thread-profile.js';
import { startsCold, warmUp } from './warm-up.js';
import { asBuffer } from '../media-frames.js';
import {
  type FromWorker,
  type LogMethod,
  ownFrame,
  type ToWorker,
  toPlainError,
  type WorkerSettings,
} from './worker-protocol.js';

/** Handling more joins at once makes a handshake hardly any cheaper. */
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

/** Turns errors into plain objects: a structured clone would drop their codes. */
function plain(fields: LogFields): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      value instanceof Error ? { ...toPlainError(value), stack: value.stack } : value,
    ]),
  );
}

const log = remoteLog({});
// Same as `logWarnings` of the log package, which would pull the whole logger into the thread.
process.removeAllListeners('warning');
process.on('warning', ({ name, message }) => log.warn('process.warning', { name, message }));
const streams = new Map<number, RelayStream>();
const profile = new ThreadProfile();

function handle(core: MediaCore, message: ToWorker): unknown {
  switch (message.type) {
    case 'openRoom': {
      const { room, roomId } = message;
      return core.openRoom(room, roomId, (report) => postReport(room, report));
    }
    case 'closeRoom':
      return core.closeRoom(message.room);
    case 'room':
      if (message.call !== undefined) return core.call(message.room, message.command);
      return core.post(message.room, message.command);
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
    case 'link':
      return core.link(message.end);
    case 'unlink':
      return core.unlink(message.worker);
    case 'close':
      void core.close().then(() => parent.close());
      return;
  }
}

function postReport(room: number, report: RoomReport): void {
  if (report.type !== 'tapEvent' || report.event.type !== 'frame') return post({ type: 'report', room, report });
  const data = ownFrame(report.event.frame.data);
  const event = { type: 'frame', frame: { ...report.event.frame, data } } as const;
  post({ type: 'report', room, report: { ...report, event } }, [data.buffer]);
}

type RelayClient = Pick<RelayStreamOptions, 'address' | 'port' | 'secure'>;

function openRelay(core: MediaCore, stream: number, { address, port, secure }: RelayClient): RelayStream {
  return core.port.attachStream({
    address,
    port,
    secure,
    // The main thread owns the socket and drops what the client does not read.
    send: (bytes) => {
      const frame = ownFrame(bytes);
      post({ type: 'relayFrame', stream, frame }, [frame.buffer]);
      return true;
    },
    allocated: () => post({ type: 'relayAllocated', stream }),
    close: () => {
      streams.delete(stream);
      post({ type: 'relayEnd', stream });
    },
  });
}

try {
  if (!startsCold()) {
    warmUp();
    await warmUpJoins(settings.certificate, WARM_UP_JOINS);
  }
  const { nonceSecret, ...rest } = settings;
  const core = await MediaCore.open({ ...rest, nonceSecret: asBuffer(nonceSecret), log });
  parent.on('message', (message: ToWorker) => {
    const { call } = message;
    try {
      const value = handle(core, message);
      if (call !== undefined) post({ type: 'reply', call, value });
    } catch (error) {
      if (call !== undefined) post({ type: 'reply', call, error: toPlainError(error) });
      else log.error('media.command_failed', { command: message.type, error });
    }
  });
  post({ type: 'ready', port: core.port.port });
} catch (error) {
  post({ type: 'failed', error: toPlainError(error) });
}
