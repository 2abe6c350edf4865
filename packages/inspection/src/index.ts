/** What tools may ask a running node: the wire, a client, and (loaded when it is started) the answering side. */
import type { Inspection } from './answering/start.js';
import type { InspectionMode } from './protocol/wire.js';
import type { InspectionParts } from './parts.js';

export * from './protocol/wire.js';
export { matcher } from './answering/pattern.js';
export { part } from './answering/redact.js';
export { InspectionError } from './errors.js';
export {
  InspectionClient,
  type AskOptions,
  type ClientOptions,
  type OpenStream,
  type StreamOptions,
} from './client.js';
export type {
  AnswerOf,
  ItemOf,
  ParsedRequest,
  ParsedStream,
  RequestFields,
  StreamFields,
} from './protocol/types.js';

export type { Inspection } from './answering/start.js';
export type { InspectionParts } from './parts.js';

/** The answering side of a node. Loaded when it is wanted: a tool starts faster without. */
export async function startInspection(parts: InspectionParts, mode: InspectionMode): Promise<Inspection> {
  const [{ start }, { sourcesOf }] = await Promise.all([import('./answering/start.js'), import('./parts.js')]);

  return start(sourcesOf(parts), mode);
}

/** Schemas of all requests, answers and items. Not loaded with the rest: a tool starts faster without. */
export const loadSchemas = () => import('./protocol/schemas.js');
