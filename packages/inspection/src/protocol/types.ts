import type { z } from 'zod';
import type { requests, streams } from './schemas.js';

type Requests = typeof requests;
type Streams = typeof streams;

export type RequestKind = keyof Requests;
export type StreamKind = keyof Streams;

/** Fields of a request as a tool sends them; those with a default may be omitted. */
export type RequestFields<K extends RequestKind> = z.input<Requests[K]['request']>;
/** Fields of a request as the node reads them, with defaults filled in. */
export type ParsedRequest<K extends RequestKind> = z.output<Requests[K]['request']>;
export type AnswerOf<K extends RequestKind> = z.output<Requests[K]['answer']>;

export type StreamFields<K extends StreamKind> = z.input<Streams[K]['request']>;
export type ParsedStream<K extends StreamKind> = z.output<Streams[K]['request']>;
export type ItemOf<K extends StreamKind> = z.output<Streams[K]['item']>;
