import type { MessageOf, ReplyOf } from '@bloom/actors';
import type { NodeProtocol } from './node-messages.js';

/** The rest of the cluster as the rooms see it. Messages to a node arrive in order or not at all. */
export interface ClusterPort {
  /** Full name of this node. */
  readonly self: string;
  /** Members with a live link, excluding this node, tools and foreign nodes. */
  members(): readonly string[];
  /** Returns the bytes received from a member so far, or undefined without a link. */
  received(node: string): number | undefined;
  /** Returns the release that a member has announced, or null if it announced none. */
  releaseOf(node: string): string | null;
  /** Returns whether a member speaks at least this version of the member protocol. */
  speaks(node: string, protocol: number): boolean;
  /** Calls the member's `rooms_node` actor. Rejects, whatever the reason, when no answer arrives within `timeoutMs`. */
  call<M extends MessageOf<NodeProtocol>>(
    node: string,
    message: M,
    options: { timeoutMs: number; requestId?: string | undefined },
  ): Promise<Awaited<ReplyOf<NodeProtocol, M['type']>>>;
  /** Returns false when the message was definitely not accepted, typically because the link is full. */
  cast(node: string, message: MessageOf<NodeProtocol>, requestId?: string): boolean;
}

/** Version of the member protocol that knows moves. */
export const MOVES = 2;

/** Returns whether a process that knows no moves has replaced the one of a member that took part in one. */
export function isReplacedByOlder(port: Pick<ClusterPort, 'members' | 'speaks'>, node: string): boolean {
  return port.members().includes(node) && !port.speaks(node, MOVES);
}
