import type { ServerResponse } from 'node:http';
import type { Request } from 'express';
import type { Route } from './routes.js';
import { pathOf } from './transport.js';

/** A step of a request: its arrival or its response. */
export interface RequestStep {
  requestId: string;
  /** `DELETE /room/kitchen`, or the status. */
  what: string;
  /** Milliseconds since the request; set for a response. */
  ranMs?: number;
}

export type OnStep = (step: RequestStep) => void;

/** Returns the request id in this response. */
export function requestIdIn(response: ServerResponse): string {
  return String(response.getHeader('x-request-id') ?? '');
}

/** Reports requests that act on a room; files, lists and health checks would be reported all the time. */
export function reportSteps(
  route: Route,
  { request, response, onStep }: { request: Request; response: ServerResponse; onStep: OnStep },
): void {
  if (route.tag !== 'room' && route.tag !== 'sip' && route.tag !== 'whip') return;
  const requestId = requestIdIn(response);
  const startedAt = performance.now();

  onStep({ requestId, what: `${request.method} ${pathOf(request)}` });
  response.once('finish', () => {
    onStep({ requestId, what: String(response.statusCode), ranMs: performance.now() - startedAt });
  });
}
