import type { ServerResponse } from 'node:http';
import type { Request } from 'express';
import type { Route } from './routes.js';
import { pathOf } from './transport.js';

/** A step of a request: that it came, and how it was answered. */
export interface RequestStep {
  requestId: string;
  /** `DELETE /room/kitchen`, or the status. */
  what: string;
  /** Of the answer: milliseconds since the request came. */
  ranMs?: number;
}

export type OnStep = (step: RequestStep) => void;

/** The id that the answer to this request carries. */
export function requestIdIn(response: ServerResponse): string {
  return String(response.getHeader('x-request-id') ?? '');
}

/** Tells of requests that do something in a room; files, lists and health would be told of all day. */
export function tellSteps(route: Route, request: Request, response: ServerResponse, onStep: OnStep): void {
  if (route.tag !== 'room' && route.tag !== 'sip') return;
  const requestId = requestIdIn(response);
  const startedAt = performance.now();

  onStep({ requestId, what: `${request.method} ${pathOf(request)}` });
  response.once('finish', () => {
    onStep({ requestId, what: String(response.statusCode), ranMs: performance.now() - startedAt });
  });
}
