/** Base of every error of this package; `code` is stable. */
export abstract class DistributionError extends Error {
  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The text is no node name. */
export class BadNodeName extends DistributionError {
  readonly code = 'BAD_NODE_NAME';
  constructor(name: string, why: string) {
    super(`${JSON.stringify(name.slice(0, 300))} is no node name: ${why}`);
  }
}

/** Short and long names never connect. */
export class NameKindMismatch extends DistributionError {
  readonly code = 'NAME_KIND_MISMATCH';
  constructor(
    readonly node: string,
    readonly mode: 'sname' | 'name',
  ) {
    super(
      mode === 'sname'
        ? `${node} has a long host name and this node uses short names (sname)`
        : `${node} has a short host name and this node uses long names (name)`,
    );
  }
}

/** The port mapper of that host knows no such node. */
export class NodeNotRegistered extends DistributionError {
  readonly code = 'NODE_NOT_REGISTERED';
  constructor(readonly node: string) {
    super(`the port mapper of its host knows no node ${node}`);
  }
}

/** The host, its port mapper or the node cannot be reached, or did not answer in time. */
export class NodeUnreachable extends DistributionError {
  readonly code = 'NODE_UNREACHABLE';
  constructor(
    readonly node: string,
    why: string,
    cause?: unknown,
  ) {
    super(`${node} cannot be reached: ${why}`, { cause });
  }
}

export type HandshakeFailure =
  /** The other side proved no knowledge of our cookie. */
  | 'bad_cookie'
  /** The other side closed; it does not say why (its check of the cookie is one reason). */
  | 'closed'
  | 'not_allowed'
  /** It dials us, too, and that attempt wins. */
  | 'nok'
  | 'name_mismatch'
  | 'malformed'
  | 'missing_flags'
  | 'timeout'
  /** Our own attempt was given up for another connection to the same node. */
  | 'aborted';

/** The handshake with another node failed; the error has the reason. */
export class HandshakeFailed extends DistributionError {
  readonly code = 'HANDSHAKE_FAILED';
  constructor(
    readonly node: string,
    readonly reason: HandshakeFailure,
    detail?: string,
  ) {
    super(`the handshake with ${node} failed: ${detail ?? HANDSHAKE_TEXT[reason]}`);
  }
}

const HANDSHAKE_TEXT: Record<HandshakeFailure, string> = {
  bad_cookie: 'its cookie is not ours',
  closed: 'it closed the connection, as a node with another cookie does',
  not_allowed: 'it does not allow us',
  nok: 'it dials us at the same time',
  name_mismatch: 'it calls itself differently',
  malformed: 'it does not speak this protocol',
  missing_flags: 'it lacks capabilities we need',
  timeout: 'it did not answer in time',
  aborted: 'the attempt was given up for another connection',
};

/** An operator keeps that node away for a while. */
export class LinkCut extends DistributionError {
  readonly code = 'LINK_CUT';
  constructor(readonly node: string) {
    super(`the connection to ${node} has been cut by an operator for a while`);
  }
}

/** There is no connection to that node. */
export class NotConnected extends DistributionError {
  readonly code = 'NOT_CONNECTED';
  constructor(readonly node: string) {
    super(`there is no connection to ${node}`);
  }
}

/** A message is larger than a frame may be; split it. */
export class FrameTooBig extends DistributionError {
  readonly code = 'FRAME_TOO_BIG';
  constructor(
    readonly bytes: number,
    readonly limit: number,
  ) {
    super(`a message of ${bytes} bytes is larger than the limit of ${limit} bytes`);
  }
}

/** No port of the range is free, or the address cannot be listened on. */
export class CannotListen extends DistributionError {
  readonly code = 'CANNOT_LISTEN';
}

/** The node has been stopped. */
export class NodeStopped extends DistributionError {
  readonly code = 'NODE_STOPPED';
  constructor() {
    super('this node has been stopped');
  }
}
