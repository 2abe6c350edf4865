/** The requests that clients of a history send to the HTTP API, with the statuses that its documentation names. */
import type { HttpAnswer, HttpRequest } from './http-face.js';
import { RECEIVER } from './receivers.js';

export interface ApiCall extends Pick<HttpRequest, 'method' | 'path' | 'body'> {
  /** Documented statuses; the first one is that of success. */
  readonly statuses: readonly number[];
}

/** `roomId` null: the nodes generate one. */
export function createRoom(roomId: string | null): ApiCall {
  const body = { ...(roomId === null ? {} : { roomId }), webhookUrl: RECEIVER, dataEvents: ['chat'] };

  return { method: 'POST', path: '/room', body, statuses: [201, 400, 503] };
}

export function getRoom(roomId: string): ApiCall {
  return { method: 'GET', path: `/room/${roomId}`, statuses: [200, 404, 503] };
}

export function deleteRoom(roomId: string): ApiCall {
  return { method: 'DELETE', path: `/room/${roomId}`, statuses: [204, 404, 503] };
}

export const LIST_ROOMS: ApiCall = { method: 'GET', path: '/room?scope=cluster', statuses: [200] };

export function addPeer(roomId: string): ApiCall {
  const body = { type: 'webrtc', options: {} };

  return { method: 'POST', path: `/room/${roomId}/peer`, body, statuses: [201, 400, 404, 503] };
}

/** `to`: name of a node; null = the one that a new room would go to. */
export function moveRoom(roomId: string, to: string | null): ApiCall {
  const statuses = [200, 400, 404, 409, 500, 503];

  return { method: 'POST', path: `/room/${roomId}/move`, body: { node: to }, statuses };
}

/** `node`: its name; null = the asked one. `moveS`: seconds in which its rooms move away; undefined = they stay. */
export function drainNode(node: string | null, moveS?: number): ApiCall {
  const body = moveS === undefined ? {} : { move: true, moveTimeout: moveS };

  return { method: 'POST', path: drainPath(node), body, statuses: [200, 404, 503] };
}

export function undrainNode(node: string | null): ApiCall {
  return { method: 'DELETE', path: drainPath(node), statuses: [200, 404, 503] };
}

function drainPath(node: string | null): string {
  return node === null ? '/node/drain' : `/node/drain?node=${encodeURIComponent(node)}`;
}

/** Returns the `data` of a successful answer. */
export function dataOf<T>({ body }: HttpAnswer): T {
  return (body as { data: T }).data;
}

/** Returns what a refusal says. */
export function refusalIn({ status, body }: HttpAnswer): string {
  const { errors } = body as { errors?: unknown };

  return typeof errors === 'string' ? `${status} ${errors}` : `${status} without a message`;
}
