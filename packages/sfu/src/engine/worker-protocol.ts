/** Messages between the main thread and a media worker. Plain data: everything here survives a structured clone. */
import type { LogFields } from '@bloom/log';
import type { AdvertisedPorts, DtlsCertificate } from '@bloom/webrtc';
import type { LinkEnd } from './ring-link.js';
import type { RoomCommand, RoomReport } from '../room-command.js';
import type { ProfileAction } from '../media-engine.js';
import { MediaError, type MediaErrorCode } from '../media-error.js';

/** Settings of a worker when it starts. */
export interface WorkerSettings {
  /** Address the UDP socket binds to. */
  listenIp: string;
  /** An address of the other family. */
  secondListenIp?: string;
  /** Further addresses of either family. */
  moreListenIps?: readonly string[];
  /** Address at which clients reach us. */
  announcedIp: string;
  /** The first free port is taken; `0..0` lets the system choose. */
  portRange: { min: number; max: number };
  /** Ports at which clients reach those of the workers behind a port mapping; absent = the same. */
  advertisedPorts?: AdvertisedPorts;
  certificate: DtlsCertificate;
  /** Shared by an engine's ports and its TCP listener; 32 bytes. */
  nonceSecret: Uint8Array;
}

/** Messages with a `reply`. `room` identifies one opening of a room, because an id may be reused. */
export type WorkerCall =
  | { type: 'openRoom'; room: number; roomId: string }
  | { type: 'closeRoom'; room: number }
  | { type: 'room'; room: number; command: RoomCommand }
  /** Answered with `EngineStats`; also the watchdog's ping. */
  | { type: 'stats' }
  | { type: 'profile'; action: ProfileAction };

/** Messages without an answer. */
export type WorkerPost =
  | { type: 'room'; room: number; command: RoomCommand }
  | { type: 'relayOpen'; stream: number; address: string; port: number; secure: boolean }
  | { type: 'relayFrame'; stream: number; frame: Uint8Array }
  | { type: 'relayClosed'; stream: number }
  | { type: 'link'; end: LinkEnd }
  | { type: 'unlink'; worker: number }
  | { type: 'close' };

export type ToWorker = (WorkerPost & { call?: undefined }) | (WorkerCall & { call: number });

export type LogMethod = 'debug' | 'info' | 'warn' | 'error';

export type FromWorker =
  /** The worker is warm and bound to this UDP port. */
  | { type: 'ready'; port: number }
  /** The worker could not start. */
  | { type: 'failed'; error: PlainError }
  | { type: 'reply'; call: number; value?: unknown; error?: PlainError }
  | { type: 'report'; room: number; report: RoomReport }
  | { type: 'log'; method: LogMethod; event: string; fields: LogFields }
  | { type: 'relayFrame'; stream: number; frame: Uint8Array }
  | { type: 'relayAllocated'; stream: number }
  | { type: 'relayEnd'; stream: number };

interface PlainError {
  name: string;
  code?: string;
  message: string;
}

const MEDIA_CODES: readonly string[] = ['NO_TRANSPORT', 'EXISTS', 'CLOSED', 'WORKER_FAILED'] satisfies MediaErrorCode[];

export function toPlainError(error: unknown): PlainError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) };
  const code: unknown = 'code' in error ? error.code : undefined;
  return { name: error.name, message: error.message, ...(typeof code === 'string' ? { code } : {}) };
}

/** Restores the error with its code, the part that callers rely on. */
export function fromPlainError({ name, code, message }: PlainError): Error {
  if (code !== undefined && MEDIA_CODES.includes(code)) return new MediaError(code as MediaErrorCode, message);
  const error = new Error(message);
  error.name = name;
  return code === undefined ? error : Object.assign(error, { code });
}

/** Copies a frame into its own memory, so that posting it does not copy the chunk it was cut from. */
export function ownFrame(frame: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.prototype.slice.call(frame) as Uint8Array<ArrayBuffer>;
}
