import type { SipRequest, SipResponse } from '../message.js';
import { responseTo, type ResponseStart } from '../transactions/transaction-layer.js';

/** Supported methods. */
export const ALLOW = 'INVITE, ACK, CANCEL, BYE, OPTIONS, UPDATE, INFO';

/** Supported body types. */
export const ACCEPT = 'application/sdp, multipart/mixed, multipart/alternative';

export interface ResponseParts extends ResponseStart {
  contact?: string;
  body?: Buffer;
  headers?: readonly (readonly [name: string, value: string])[];
}

export function responseWith(request: SipRequest, parts: ResponseParts): SipResponse {
  const { status } = parts;
  const response = responseTo(request, parts);
  if (parts.contact !== undefined) response.headers.set('Contact', `<${parts.contact}>`);
  for (const [name, value] of parts.headers ?? []) response.headers.set(name, value);
  if (parts.body !== undefined) {
    response.headers.set('Content-Type', 'application/sdp');
    response.body = parts.body;
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
  return responseWith(request, {
    status: 420,
    reason: 'Bad Extension',
    headers: [['Unsupported', required.join(', ')]],
  });
}
