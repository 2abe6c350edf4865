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
  /** Ctrl-C ended a command before it had an answer. */
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export interface FailureOptions extends ErrorOptions {
  advice?: string;
}

/** Ends the program with a sentence on stderr. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly exit: ExitCode;
  /** Advice on how to fix it. */
  readonly advice: string | undefined;

  constructor(exit: ExitCode, message: string, { advice, ...options }: FailureOptions = {}) {
    super(message, options);
    this.exit = exit;
    this.advice = advice;
  }
}
