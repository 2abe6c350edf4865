export type DistributionErrorCode =
  /** The text is not a node name. */
  | 'BAD_NODE_NAME'
  /** Short and long names never connect. */
  | 'NAME_KIND_MISMATCH'
  /** The port mapper of the host has no such node. */
  | 'NODE_NOT_REGISTERED'
  /** The host, its port mapper or the node cannot be reached, or did not answer in time. */
  | 'NODE_UNREACHABLE'
  /** The other side refused, was silent, or did not prove that it knows the cookie; `reason` says which. */
  | 'HANDSHAKE_FAILED'
  /** An operator has cut that node off for a while. */
  | 'LINK_CUT'
  /** There is no connection to that node. */
  | 'NOT_CONNECTED'
  /** A message exceeds the maximum frame size; split it. */
  | 'FRAME_TOO_BIG'
  /** No port of the range is free, or the address cannot be listened on. */
  | 'CANNOT_LISTEN'
  /** This node has been stopped. */
  | 'NODE_STOPPED';

/** Every error of this package; `code` is stable. */
export class DistributionError extends Error {
  override readonly name: string = 'DistributionError';

  constructor(
    readonly code: DistributionErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export type HandshakeFailure =
  /** The other side did not prove that it knows our cookie. */
  | 'bad_cookie'
  /** The other side closed without giving a reason; its check of the cookie may have failed. */
  | 'closed'
  | 'not_allowed'
  /** The node is dialling us too, and that attempt wins. */
  | 'nok'
  | 'name_mismatch'
  | 'malformed'
  | 'missing_flags'
  | 'timeout'
  /** Our attempt was abandoned in favour of another connection to the same node. */
  | 'aborted';

const HANDSHAKE_TEXT: Record<HandshakeFailure, string> = {
  bad_cookie: 'its cookie differs from ours',
  closed: 'it closed the connection, as a node with another cookie does',
  not_allowed: 'it refused us',
  nok: 'it is dialling us at the same time',
  name_mismatch: 'it calls itself differently',
  malformed: 'it does not speak this protocol',
  missing_flags: 'it lacks required capabilities',
  timeout: 'it did not answer in time',
  aborted: 'the attempt was abandoned in favour of another connection',
};

export class HandshakeFailed extends DistributionError {
  override readonly name = 'HandshakeFailed';
  /** Name of the node that answered, if it is another one. */
  readonly answered: string | undefined;

  constructor(
    readonly node: string,
    readonly reason: HandshakeFailure,
    { detail = HANDSHAKE_TEXT[reason], answered }: { detail?: string; answered?: string | undefined } = {},
  ) {
    super('HANDSHAKE_FAILED', `the handshake with ${node} failed: ${detail}`);
    this.answered = answered;
  }
}
