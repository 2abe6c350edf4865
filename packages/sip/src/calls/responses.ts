import type { SipRequest, SipResponse } from '../message.js';
import { responseTo } from '../transactions/transaction-layer.js';

/** Supported methods. */
export const ALLOW = 'INVITE, ACK, CANCEL, BYE, OPTIONS, UPDATE, INFO';

/** Supported body types. */
export const ACCEPT = 'application/sdp, multipart/mixed, multipart/alternative';

export interface AnswerExtras {
  toTag?: string;
  contact?: string;
  body?: Buffer;
  headers?: readonly (readonly [name: string, value: string])[];
}

export function answerTo(request: SipRequest, status: number, reason: string, extras: AnswerExtras = {}): SipResponse {
  const response = responseTo(request, status, reason, extras.toTag);
  if (extras.contact !== undefined) response.headers.set('Contact', `<${extras.contact}>`);
  for (const [name, value] of extras.headers ?? []) response.headers.set(name, value);
  if (extras.body !== undefined) {
    response.headers.set('Content-Type', 'application/sdp');
    response.body = extras.body;
  }
  // Responses that form a dialog keep the route of their request (section 12.1.1).
  if (request.method === 'INVITE' && status >= 200 && status < 300)
    response.headers.set('Record-Route', ...request.headers.all('Record-Route'));
  return response;
}

/** Returns the rejection of a request that requires extensions, since none are supported (section 8.2.2.3). */
export function unsupported(request: SipRequest): SipResponse | undefined {
  const required = request.headers.all('Require');
  if (required.length === 0 || request.method === 'CANCEL' || request.method === 'ACK') return undefined;
  return answerTo(request, 420, 'Bad Extension', { headers: [['Unsupported', required.join(', ')]] });
}
