/** Messages between the main thread and a media worker. Plain data: everything here survives a structured clone. */
import type { LogFields } from '@bloom/log';
import type { DtlsCertificate } from '@bloom/webrtc';
import type {
  MediaRoomEvent,
  ProfileAction,
  RelayCredentials,
  TransportNegotiation,
  Variant,
} from '../media-engine.js';
import type { FeedFrame, FeedOptions, TapEvent } from '../media-frames.js';
import { MediaError, type MediaErrorCode } from '../media-error.js';
import type { PerVariant } from '../variants.js';

/** What a worker is started with. */
export interface WorkerSettings {
  listenIp: string;
  announcedIp: string;
  portRange: { min: number; max: number };
  certificate: DtlsCertificate;
  nonceSecret: Uint8Array;
}

/** `room` is the number of one opening of a room: a name may be used again. */
export type ToWorker =
  | { type: 'openRoom'; call: number; room: number; roomId: string }
  | { type: 'closeRoom'; call: number; room: number }
  | { type: 'openTransport'; room: number; peerId: string; transport: number; relay: RelayCredentials }
  | { type: 'negotiate'; call: number; room: number; peerId: string; negotiation: TransportNegotiation }
  | { type: 'closeTransport'; room: number; peerId: string }
  | { type: 'setTargetVariant'; room: number; peerId: string; trackId: string; variant: Variant }
  | { type: 'setTrackBitrates'; room: number; trackId: string; bitratesBps: Partial<PerVariant<number>> }
  | { type: 'setTrackMuted'; room: number; trackId: string; muted: boolean }
  | { type: 'openFeed'; room: number; feed: number; options: Omit<FeedOptions, 'onKeyFrameWanted'> }
  | { type: 'feedFrame'; feed: number; frame: FeedFrame }
  | { type: 'closeFeed'; room: number; feed: number }
  | { type: 'openTap'; room: number; tap: number; trackId: string }
  /** The consumer is done with that many frames. */
  | { type: 'tapConsumed'; tap: number; frames: number; bytes: number }
  | { type: 'tapKeyFrame'; tap: number }
  /** Answered when all frames have been posted. */
  | { type: 'closeTap'; call: number; room: number; tap: number }
  | { type: 'capturePackets'; call: number; room: number; peerId: string; end: boolean }
  | { type: 'roomStats'; call: number; room: number }
  /** Answered with `EngineStats`; also the watchdog's question. */
  | { type: 'stats'; call: number }
  | { type: 'profile'; call: number; action: ProfileAction }
  | { type: 'relayOpen'; stream: number; address: string; port: number }
  | { type: 'relayFrame'; stream: number; frame: Uint8Array }
  | { type: 'relayClosed'; stream: number }
  | { type: 'close' };

export type LogMethod = 'debug' | 'info' | 'warn' | 'error';

export type FromWorker =
  /** Warm and bound to this UDP port. */
  | { type: 'ready'; port: number }
  /** It could not start. */
  | { type: 'failed'; error: PlainError }
  | { type: 'reply'; call: number; value?: unknown; error?: PlainError }
  | { type: 'event'; room: number; event: MediaRoomEvent }
  | { type: 'feedKeyFrame'; room: number; feed: number }
  | { type: 'tapEvent'; room: number; tap: number; event: TapEvent }
  | { type: 'log'; method: LogMethod; event: string; fields: LogFields }
  | { type: 'relayFrame'; stream: number; frame: Uint8Array }
  | { type: 'relayEnd'; stream: number };

/** The call a message asks for, without its number. */
export type WorkerCall =
  Extract<ToWorker, { call: number }> extends infer M ? (M extends { call: number } ? Omit<M, 'call'> : never) : never;

export interface PlainError {
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

/** The error as its caller knows it: by its code. */
export function fromPlainError({ name, code, message }: PlainError): Error {
  if (code !== undefined && MEDIA_CODES.includes(code)) return new MediaError(code as MediaErrorCode, message);
  const error = new Error(message);
  error.name = name;
  return code === undefined ? error : Object.assign(error, { code });
}

/** A copy with memory of its own, so that posting it does not copy the chunk it was cut from. */
export function ownFrame(frame: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.prototype.slice.call(frame) as Uint8Array<ArrayBuffer>;
}

export function asBuffer(frame: Uint8Array): Buffer {
  return Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
}
