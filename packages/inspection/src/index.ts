/** Questions of tools to a running node: protocol, client and, loaded on demand, the answering side. */
import type { Inspection } from './inspection.js';
import type { InspectionMode } from './protocol/wire.js';
import type { InspectionParts } from './parts.js';

export {
  PROTOCOL_VERSION,
  type Asking,
  type ErrorCode,
  type InspectionMode,
  type InspectionProtocol,
  type Reply,
  type SinkProtocol,
  type SinkRef,
  type StreamEnd,
  type StreamEnded,
  type StreamItems,
  type StreamOpened,
  type WireError,
} from './protocol/wire.js';
export {
  findLocalSockets,
  openLocalServer,
  type LocalServer,
  type LocalMachine,
} from './local-sockets.js';
export { matcher } from './inspector/pattern.js';
export { part } from './inspector/redact.js';
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
  RequestKind,
  StreamFields,
  StreamKind,
} from './protocol/types.js';

export type { Inspection } from './inspection.js';
export type { InspectionParts } from './parts.js';

/** Opens the answering side of a node. Loaded on demand, so that tools start faster. */
export async function openInspection(parts: InspectionParts, mode: InspectionMode): Promise<Inspection> {
  const { open } = await loadInspection();

  return open(parts, mode);
}

/** The answering side, for callers that open it without waiting. */
export const loadInspection = () => import('./inspection.js');

/** Schemas of all requests, answers and items. Loaded on demand, so that tools start faster. */
export const loadSchemas = () => import('./protocol/schemas.js');
