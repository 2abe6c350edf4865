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

/** Answers requests: a cluster through one link, or a dump. */
export interface Asker {
  /** The linked node, or the dumped one. */
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
