/** Traffic with other nodes since the start. */
export interface RemoteCounters {
  castsOut: number;
  callsOut: number;
  castsIn: number;
  callsIn: number;
  /** Calls without an answer in time. */
  timeouts: number;
  /** Answers that came after their call had ended. */
  lateReplies: number;
  /** Requests and messages to a node without connection, and calls that lost theirs. */
  noConnection: number;
  /** Messages that a full connection did not accept. */
  overflowed: number;
  /** Messages and replies that cannot travel. */
  notSendable: number;
  /** Messages from other nodes to no actor, or to one that does not handle such. */
  deadLetters: number;
  /** Messages, signals and answers from other nodes that have no declared shape, or another one. */
  refused: number;
  /** Exit signals that ended an actor. */
  exits: number;
  functionCalls: number;
  functionFailures: number;
}

export function newCounters(): RemoteCounters {
  return {
    castsOut: 0,
    callsOut: 0,
    castsIn: 0,
    callsIn: 0,
    timeouts: 0,
    lateReplies: 0,
    noConnection: 0,
    overflowed: 0,
    notSendable: 0,
    deadLetters: 0,
    refused: 0,
    exits: 0,
    functionCalls: 0,
    functionFailures: 0,
  };
}
