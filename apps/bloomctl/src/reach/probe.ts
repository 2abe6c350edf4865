import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { type HandshakeFailure, type Identity, Initiator, ownFlags } from '@bloom/distribution';

/** Layers of a handshake, in order. */
export type ProbeLayer = 'tcp' | 'handshake' | 'cookie';

/** A failed handshake. */
export class ProbeFailed extends Error {
  override readonly name = 'ProbeFailed';
  constructor(
    readonly layer: ProbeLayer,
    /** Code of the socket error, or reason for the handshake's failure. */
    readonly reason: string,
    /** The node that answered, if the handshake got that far. */
    readonly answered: Identity | undefined,
  ) {
    super(`the ${layer} layer failed: ${reason}`);
  }
}

export interface ProbeOptions {
  /** Address and port, or the path of a Unix socket. */
  readonly at: { readonly host: string; readonly port: number } | { readonly path: string };
  /** Full name that must answer; undefined accepts any name. */
  readonly target: string | undefined;
  /** Our own name. */
  readonly self: string;
  readonly cookie: string;
  /** Time limit of each layer. */
  readonly timeoutMs: number;
  readonly passed?: (layer: ProbeLayer, peer: Identity | undefined) => void;
}

/** Performs a handshake with a node step by step, then disconnects. @throws ProbeFailed */
export function probe(options: ProbeOptions): Promise<Identity> {
  const { at, target, self, cookie, timeoutMs, passed = () => {} } = options;
  return new Promise((resolve, reject) => {
    const identity = {
      name: self,
      creation: 4 + (randomBytes(4).readUInt32BE() % 0xffff_0000),
      flags: ownFlags(false),
    };
    const machine = new Initiator(identity, target, {
      cookie: () => cookie,
      challenge: () => randomBytes(4).readUInt32BE(),
    });
    const socket = connect({ ...at, noDelay: true });
    let layer: ProbeLayer = 'tcp';
    let timer: NodeJS.Timeout | undefined;

    const fail = (reason: HandshakeFailure | string): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(new ProbeFailed(layer, reason, machine.answered));
    };
    const next = (into: ProbeLayer): void => {
      passed(layer, machine.answered);
      layer = into;
      clearTimeout(timer);
      timer = setTimeout(() => fail('timeout'), timeoutMs);
    };
    timer = setTimeout(() => fail('timeout'), timeoutMs);
    socket.on('connect', () => {
      next('handshake');
      socket.write(Buffer.concat(machine.start().send));
    });
    socket.on('data', (bytes) => {
      const step = machine.data(bytes);
      if (step.failed !== undefined) {
        fail(step.failed);
        return;
      }
      if (step.send.length > 0) socket.write(Buffer.concat(step.send));
      if (layer === 'handshake' && machine.answered !== undefined) next('cookie');
      if (step.up === undefined) return;
      clearTimeout(timer);
      passed('cookie', step.up.remote);
      socket.removeAllListeners('close');
      socket.destroy();
      resolve(step.up.remote);
    });
    socket.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
    socket.on('close', () => fail('closed'));
  });
}
