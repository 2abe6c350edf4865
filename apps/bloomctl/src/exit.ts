/** Exit codes. Those from 64 on follow sysexits.h. */
export const EXIT = {
  ok: 0,
  /** A check answered "no". */
  no: 1,
  usage: 64,
  /** No such actor, room, peer, component or node. */
  unknown: 65,
  unreachable: 69,
  /** A fault of this program, or of the node while answering. */
  fault: 70,
  timeout: 75,
  /** The cookie is wrong, or the node does not allow it. */
  rights: 77,
  configuration: 78,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends the program with a sentence on stderr. */
export class Failure extends Error {
  override readonly name = 'Failure';
  constructor(
    readonly exit: ExitCode,
    message: string,
    /** Advice on how to fix it. */
    readonly advice?: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
