/** What tools may ask a running node: the wire, a client, and (loaded when it is started) the answering side. */
export * from './protocol/wire.js';
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

/** Schemas of all requests, answers and items. Not loaded with the rest: a tool starts faster without. */
export const loadSchemas = () => import('./protocol/schemas.js');
