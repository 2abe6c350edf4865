import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';

export interface DirectRouteOptions {
  method: 'GET';
  /** Matches the whole path without the query; its groups are the parameters. */
  path: RegExp;
  parameters: readonly string[];
  /** The steps that express would run. */
  steps: readonly RequestHandler[];
  failure: ErrorRequestHandler;
}

/**
 * Serves one route without express, for cheap requests that arrive by the thousand: those of low-latency stream
 * players. Such a request passes through the same steps as any other. Returns false for other requests, and for paths
 * that cannot be decoded, which express answers.
 */
export function directRoute(
  options: DirectRouteOptions,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  const { method, path, parameters, steps, failure } = options;

  return (incoming, outgoing) => {
    if (incoming.method !== method) return false;
    const url = incoming.url ?? '';
    const end = url.indexOf('?');
    const match = path.exec(end < 0 ? url : url.slice(0, end));
    const values = match === null ? undefined : decoded(match);
    if (values === undefined) return false;

    const request = incoming as Request;
    const response = outgoing as Response;
    request.params = Object.fromEntries(parameters.map((name, i) => [name, values[i] ?? '']));
    response.locals = {};
    const fail = (error: unknown): void => void failure(error, request, response, () => undefined);
    const proceed = (i: number): void => {
      try {
        const done: unknown = steps[i]?.(request, response, (error?: unknown) => {
          if (error === undefined) proceed(i + 1);
          else fail(error);
        });
        if (done instanceof Promise) done.catch(fail);
      } catch (error) {
        fail(error);
      }
    };
    proceed(0);

    return true;
  };
}

function decoded(match: RegExpExecArray): string[] | undefined {
  try {
    return match.slice(1).map((part) => (part.includes('%') ? decodeURIComponent(part) : part));
  } catch {
    return undefined;
  }
}
