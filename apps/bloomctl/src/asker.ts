import type {
  AnswerOf,
  AskOptions,
  OpenStream,
  RequestFields,
  RequestKind,
  StreamFields,
  StreamKind,
  StreamOptions,
} from '@bloom/inspection';

/** Answers requests from a cluster through one link, or from a dump. */
export interface Asker {
  /** The linked or dumped node. */
  readonly asked: string;
  /** @throws InspectionError, Failure */
  ask<K extends RequestKind>(
    kind: K,
    fields: RequestFields<K>,
    options?: AskOptions,
  ): Promise<{ node: string; answer: AnswerOf<K> }>;
  /** @throws InspectionError, Failure */
  stream<K extends StreamKind>(kind: K, fields: StreamFields<K>, options: StreamOptions<K>): Promise<OpenStream>;
  close(): Promise<void>;
}
