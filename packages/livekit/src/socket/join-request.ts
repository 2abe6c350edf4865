import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { JoinRequest, SignalRequest, WrappedJoinRequest, WrappedJoinRequest_Compression } from '@livekit/protocol';
import { z } from 'zod';
import { decode } from '../decode.js';
import { LivekitError } from '../errors.js';

/** Size of the parameter, and of its decompressed content, which has two SDPs of a call that is resumed. */
const MAX_ENCODED_BYTES = 64 * 1024;
const MAX_INFLATED_BYTES = 1024 * 1024;
/** Characters of any other parameter that are read. */
const MAX_PARAMETER = 256;
const ATTRIBUTES = z.record(z.string(), z.string());
/** Requests that a client may send along with its join. */
const MAX_REQUESTS = 20;

const inflate = promisify(gunzip);

/**
 * Returns the request in the parameter `join_request`.
 * @throws LivekitError INVALID when it is missing, too large, or cannot be read
 */
export async function readJoinRequest(parameter: string | null): Promise<JoinRequest> {
  if (parameter === null || parameter === '')
    throw new LivekitError('INVALID', 'the parameter join_request is missing');
  if (parameter.length > MAX_ENCODED_BYTES) throw tooLarge(MAX_ENCODED_BYTES);
  const wrapped = decoded(() => decode(WrappedJoinRequest, Buffer.from(parameter, 'base64url')));
  if (wrapped.compression === WrappedJoinRequest_Compression.NONE)
    return decoded(() => decode(JoinRequest, wrapped.joinRequest));
  if (wrapped.compression !== WrappedJoinRequest_Compression.GZIP) throw unreadable();

  const bytes = await inflate(wrapped.joinRequest, { maxOutputLength: MAX_INFLATED_BYTES }).catch((error: unknown) => {
    throw (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(MAX_INFLATED_BYTES) : unreadable();
  });

  return decoded(() => decode(JoinRequest, bytes));
}

/**
 * Returns the request of a client that speaks version 0 of the signalling, from the parameters of its address.
 * @throws LivekitError INVALID when one cannot be read
 */
export function readJoinParameters(parameters: URLSearchParams): JoinRequest {
  // Clients of before 2021 publish on a websocket of its own.
  if (parameters.has('publish')) throw new LivekitError('INVALID', 'the parameter publish is not supported');
  const text = (name: string): string => (parameters.get(name) ?? '').slice(0, MAX_PARAMETER);
  const number = (name: string): number => (/^\d{1,9}$/.test(text(name)) ? Number(text(name)) : 0);
  const flag = (name: string, fallback = false): boolean =>
    parameters.has(name) ? ['1', 'true'].includes(text(name)) : fallback;

  return new JoinRequest({
    clientInfo: {
      protocol: number('protocol'),
      clientProtocol: number('client_protocol'),
      capabilities: text('capabilities')
        .split(',')
        .filter((each) => /^\d{1,9}$/.test(each))
        .map(Number),
    },
    connectionSettings: { autoSubscribe: flag('auto_subscribe', true) },
    participantAttributes: attributesOf(parameters.get('attributes') ?? ''),
    reconnect: flag('reconnect'),
    participantSid: text('sid'),
  });
}

function attributesOf(encoded: string): Record<string, string> {
  if (encoded === '') return {};
  if (encoded.length > MAX_ENCODED_BYTES) throw new LivekitError('INVALID', 'the parameter attributes is too long');
  try {
    const read = ATTRIBUTES.safeParse(JSON.parse(Buffer.from(encoded, 'base64').toString()));
    if (read.success) return read.data;
  } catch {
    // Refused below.
  }
  throw new LivekitError('INVALID', 'the parameter attributes cannot be read');
}

/** Returns the requests that come with the join, as if the client had sent them right after it. */
export function requestsWith({ addTrackRequests, publisherOffer }: JoinRequest): string[] {
  const requests = [
    ...addTrackRequests
      .slice(0, MAX_REQUESTS)
      .map((value) => new SignalRequest({ message: { case: 'addTrack', value } })),
    ...(publisherOffer === undefined || publisherOffer.sdp === ''
      ? []
      : [new SignalRequest({ message: { case: 'offer', value: publisherOffer } })]),
  ];

  return requests.map((request) => Buffer.from(request.toBinary()).toString('base64'));
}

function decoded<T>(decode: () => T): T {
  try {
    return decode();
  } catch {
    throw unreadable();
  }
}

function unreadable(): LivekitError {
  return new LivekitError('INVALID', 'the parameter join_request cannot be read');
}

function tooLarge(bytes: number): LivekitError {
  return new LivekitError('INVALID', `the parameter join_request exceeds ${bytes} bytes`);
}
