import type { MessageOf, ReplyOf } from '@bloom/actors';
import type { NodeProtocol } from './node-messages.js';

/** The rest of the cluster, as the rooms see it. Messages to one node arrive in order or not at all. */
export interface ClusterPort {
  /** Full name of the own node. */
  readonly self: string;
  /** Members with a link now, without the own node, tools and foreign nodes. */
  members(): readonly string[];
  /** Returns the bytes received from a member so far; undefined without a link. */
  received(node: string): number | undefined;
  /** Returns the release that a member has announced; null for one that announced none. */
  releaseOf(node: string): string | null;
  /** Asks the `rooms_node` actor there. Rejects when there is no answer within `timeoutMs`, whatever the reason. */
  call<M extends MessageOf<NodeProtocol>>(
    node: string,
    message: M,
    options: { timeoutMs: number; requestId?: string | undefined },
  ): Promise<Awaited<ReplyOf<NodeProtocol, M['type']>>>;
  /** Returns false when the message was certainly not accepted, above all by a full link. */
  cast(node: string, message: MessageOf<NodeProtocol>, requestId?: string): boolean;
}
