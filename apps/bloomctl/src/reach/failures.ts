import { DistributionError, HandshakeFailed, type HandshakeFailure } from '@bloom/distribution';
import { InspectionError } from '@bloom/inspection';
import { PortMapperError } from '@bloom/port-mapper';
import { EXIT, type ExitCode, Failure } from '../exit.js';
import { LayerFailure } from './findings.js';
import { ProbeFailed } from './probe.js';

const ANSWERS: Record<InspectionError['code'], ExitCode> = {
  BAD_REQUEST: EXIT.usage,
  UNKNOWN_NODE: EXIT.unknown,
  UNKNOWN_ACTOR: EXIT.unknown,
  UNKNOWN_ROOM: EXIT.unknown,
  UNKNOWN_PEER: EXIT.unknown,
  UNKNOWN_COMPONENT: EXIT.unknown,
  UNKNOWN_DECISION: EXIT.unknown,
  NOT_PERMITTED: EXIT.rights,
  OFF: EXIT.rights,
  NOT_SUPPORTED: EXIT.unreachable,
  UNREACHABLE: EXIT.unreachable,
  TIMEOUT: EXIT.timeout,
  BUSY: EXIT.timeout,
  FAILED: EXIT.fault,
};

const HANDSHAKES: Partial<Record<HandshakeFailure, ExitCode>> = {
  bad_cookie: EXIT.rights,
  closed: EXIT.rights,
  not_allowed: EXIT.rights,
  timeout: EXIT.timeout,
  name_mismatch: EXIT.unknown,
};

/** Converts an error in reaching or asking a node into an exit code, a message and advice. */
export function toFailure(error: unknown, node = 'the node'): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof LayerFailure) {
    return new Failure(error.exit, error.message.replace(/\.$/, ''), { advice: error.fix, cause: error });
  }
  const cause = { cause: error };
  if (error instanceof InspectionError) return new Failure(ANSWERS[error.code], error.message, cause);
  if (error instanceof HandshakeFailed) {
    const exit = HANDSHAKES[error.reason] ?? EXIT.unreachable;
    return new Failure(exit, error.message, {
      advice: `bloomctl doctor ${error.node} tells which layer fails`,
      ...cause,
    });
  }
  if (error instanceof ProbeFailed) {
    const exit = HANDSHAKES[error.reason as HandshakeFailure] ?? EXIT.unreachable;
    const refused = error.layer === 'cookie' && exit === EXIT.rights;
    const message = refused ? `${node} does not accept this cookie` : `${node} cannot be reached: ${error.reason}`;
    return new Failure(exit, message, { advice: `bloomctl doctor ${node} tells which layer fails`, ...cause });
  }
  if (error instanceof DistributionError || error instanceof PortMapperError) {
    const exit = error.code === 'NODE_NOT_REGISTERED' ? EXIT.unknown : EXIT.unreachable;
    return new Failure(exit, error.message, cause);
  }
  return new Failure(EXIT.fault, error instanceof Error ? error.message : String(error), cause);
}
