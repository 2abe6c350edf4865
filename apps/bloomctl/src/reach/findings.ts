import { missingFlags } from '@bloom/distribution';
import { type Cookie, fingerprint } from '../cookie.js';
import { EXIT, type ExitCode } from '../exit.js';
import { span } from '../text/units.js';
import type { ProbeFailed } from './probe.js';

/** Version of the distribution protocol. */
export const VERSION = 6;

interface Fault {
  exit: ExitCode;
  /** Text on the layer's line. */
  text: string;
  /** A whole sentence. */
  message: string;
  fix: string;
}

/** A layer that failed. */
export class LayerFailure extends Error {
  readonly exit: ExitCode;
  readonly text: string;
  readonly fix: string;

  constructor({ exit, text, message, fix }: Fault) {
    super(message);
    this.exit = exit;
    this.text = text;
    this.fix = fix;
  }
}

export function failedTcp({ reason }: ProbeFailed, where: string, timeoutMs: number): LayerFailure {
  if (reason === 'timeout') {
    return new LayerFailure({
      exit: EXIT.unreachable,
      text: `${where}: no answer within ${span(timeoutMs)}`,
      message: 'The port mapper can be reached, the node cannot: packets to its port are dropped.',
      fix: `Open port ${where.split(':').at(-1)} between the two machines. JF_DIST_MIN_PORT and JF_DIST_MAX_PORT choose which ports nodes use.`,
    });
  }
  return new LayerFailure({
    exit: EXIT.unreachable,
    text: `${where}: ${reason}`,
    message: 'The name is registered, but nothing listens on its port at this address.',
    fix: 'The node listens on another address of its machine (JF_DIST_IP), or is shutting down.',
  });
}

export function failedHandshake({ reason, answered }: ProbeFailed, timeoutMs: number): LayerFailure {
  switch (reason) {
    case 'name_mismatch':
      return new LayerFailure({
        exit: EXIT.unknown,
        text: `the node there calls itself ${answered?.name}`,
        message: 'Nodes compare the whole name, with its host part.',
        fix: `bloomctl doctor ${answered?.name}`,
      });
    case 'missing_flags':
      return new LayerFailure({
        exit: EXIT.unreachable,
        text: `flags missing: ${missingFlags(answered?.flags ?? 0n).join(', ')}`,
        message: 'The program there is older than OTP 26, the oldest that Bloom talks to.',
        fix: 'Choose another node; only nodes of Bloom answer this tool.',
      });
    case 'not_allowed':
      return new LayerFailure({
        exit: EXIT.rights,
        text: 'not allowed',
        message: 'The node does not accept nodes with our name.',
        fix: 'Run this tool on a host that the node allows.',
      });
    case 'timeout':
      return new LayerFailure({
        exit: EXIT.timeout,
        text: `silent for ${span(timeoutMs)}`,
        message: 'The port is open, but the program behind it says nothing: it is frozen, or not a node.',
        fix: 'Look at the process on that machine; kill -CONT if it was stopped.',
      });
    default:
      return new LayerFailure({
        exit: EXIT.unreachable,
        text: reason === 'closed' ? 'closed without an answer' : `no distribution protocol of version ${VERSION}`,
        message: 'The program there is not the node that the port mapper names, or it speaks another version.',
        fix: 'Check which program uses that port on that machine.',
      });
  }
}

export function failedCookie({ reason }: ProbeFailed, node: string, cookie: Cookie): LayerFailure {
  const ours = `ours ${fingerprint(cookie.value)}…, from ${cookie.source}`;
  if (reason === 'timeout') {
    return new LayerFailure({
      exit: EXIT.timeout,
      text: `no answer. ${ours}`,
      message: 'The node stopped answering in the middle of the handshake.',
      fix: 'Try again.',
    });
  }
  return new LayerFailure({
    exit: EXIT.rights,
    text: `refused. ${ours}`,
    message: `${node} does not accept this cookie.`,
    fix: 'Set the same value on all nodes and for this tool. The value is not shown; compare hashes with `bloomctl doctor` on the machine of that node.',
  });
}
