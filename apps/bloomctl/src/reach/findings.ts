import { missingFlags } from '@bloom/distribution';
import { type Cookie, fingerprint } from '../cookie.js';
import { EXIT, type ExitCode } from '../exit.js';
import { span } from '../text/units.js';
import type { ProbeFailed } from './probe.js';

/** Version of the distribution protocol. */
export const VERSION = 6;

/** A layer that failed. */
export class Bad extends Error {
  constructor(
    readonly exit: ExitCode,
    /** Text on the layer's line. */
    readonly text: string,
    /** A whole sentence. */
    override readonly message: string,
    readonly fix: string,
  ) {
    super(message);
  }
}

export function badTcp({ reason }: ProbeFailed, where: string, timeoutMs: number): Bad {
  if (reason === 'timeout') {
    return new Bad(
      EXIT.unreachable,
      `${where}: no answer within ${span(timeoutMs)}`,
      'The port mapper can be reached, the node cannot: packets to its port are dropped.',
      `Open port ${where.split(':').at(-1)} between the two machines. JF_DIST_MIN_PORT and JF_DIST_MAX_PORT choose which ports nodes use.`,
    );
  }
  return new Bad(
    EXIT.unreachable,
    `${where}: ${reason}`,
    'The name is registered, but nothing listens on its port at this address.',
    'The node listens on another address of its machine (JF_DIST_IP), or is just going down.',
  );
}

export function badHandshake({ reason, answered }: ProbeFailed, timeoutMs: number): Bad {
  switch (reason) {
    case 'name_mismatch':
      return new Bad(
        EXIT.unknown,
        `the node there calls itself ${answered?.name}`,
        'Nodes compare the whole name, with its host part.',
        `bloomctl doctor ${answered?.name}`,
      );
    case 'missing_flags':
      return new Bad(
        EXIT.unreachable,
        `flags missing: ${missingFlags(answered?.flags ?? 0n).join(', ')}`,
        'The program there is older than what Bloom speaks with (OTP 26).',
        'Choose another node; only nodes of Bloom answer this tool.',
      );
    case 'not_allowed':
      return new Bad(
        EXIT.rights,
        'not allowed',
        'The node does not let nodes of our name in.',
        'Run this tool on a host that the node allows.',
      );
    case 'timeout':
      return new Bad(
        EXIT.timeout,
        `silent for ${span(timeoutMs)}`,
        'The port is open, but the program behind it says nothing: it is frozen, or no node.',
        'Look at the process on that machine; kill -CONT when it was stopped.',
      );
    default:
      return new Bad(
        EXIT.unreachable,
        reason === 'closed' ? 'closed without a word' : `no distribution protocol of version ${VERSION}`,
        'What listens there is not what the port mapper says, or speaks another version.',
        'Look which program has that port on that machine.',
      );
  }
}

export function badCookie({ reason }: ProbeFailed, node: string, cookie: Cookie): Bad {
  const ours = `ours ${fingerprint(cookie.value)}…, from ${cookie.source}`;
  if (reason === 'timeout') {
    return new Bad(
      EXIT.timeout,
      `no answer. ${ours}`,
      'The node stopped answering in the middle of the handshake.',
      'Try again.',
    );
  }
  return new Bad(
    EXIT.rights,
    `refused. ${ours}`,
    `${node} does not accept this cookie.`,
    'Set the same value on all nodes and for this tool. The value is not shown; compare hashes with `bloomctl doctor` on the machine of that node.',
  );
}
