/** Traffic with other nodes since start-up. */
export interface RemoteCounters {
  castsOut: number;
  callsOut: number;
  castsIn: number;
  callsIn: number;
  /** Calls that were not answered in time. */
  timeouts: number;
  /** Answers that came after their call had ended. */
  lateReplies: number;
  /** Requests and messages to a node that was not connected, and calls that lost their connection. */
  noConnection: number;
  /** Messages that a full connection did not accept. */
  overflowed: number;
  /** Messages and replies that cannot travel. */
  notSendable: number;
  /** Messages from other nodes to an actor that does not exist or does not handle them. */
  deadLetters: number;
  /** Messages, signals and answers from other nodes without the declared shape. */
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
