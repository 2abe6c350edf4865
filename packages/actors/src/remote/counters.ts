/** Traffic with other nodes since the start. */
export interface RemoteCounters {
  castsOut: number;
  callsOut: number;
  castsIn: number;
  callsIn: number;
  /** Calls without an answer in time. */
  timeouts: number;
  /** Answers that nobody waited for any more. */
  lateReplies: number;
  /** Requests and messages to a node without connection, and calls that lost theirs. */
  noConnection: number;
  /** Messages that a full connection did not take. */
  overflowed: number;
  /** Messages and replies that cannot travel. */
  notSendable: number;
  /** Messages from other nodes to nobody, or to somebody who does not take such. */
  deadLetters: number;
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
    exits: 0,
    functionCalls: 0,
    functionFailures: 0,
  };
}
