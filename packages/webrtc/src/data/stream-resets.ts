import type { SCTP } from 'werift-sctp';
import { isAfter, type SctpInternals } from './mended-sctp.js';

/** Type of an answer in a RECONFIG, and its result for a request that was carried out (RFC 6525 section 4.4). */
const ANSWER = 16;
const PERFORMED = 1;

export interface StreamResetHandlers {
  /** Called for streams on which the client sends no further message. */
  onReset(streams: readonly number[]): void;
  /** Called for streams that we reset, when the client has carried it out. */
  onResetDone(streams: readonly number[]): void;
}

/** Resets of streams (RFC 6525), each for one direction. Those of the client are handled here, because werift carries out too many. */
export class StreamResets {
  readonly #sctp: SCTP;
  readonly #internals: SctpInternals;
  readonly #handlers: StreamResetHandlers;

  constructor(sctp: SCTP, internals: SctpInternals, handlers: StreamResetHandlers) {
    this.#sctp = sctp;
    this.#internals = internals;
    this.#handlers = handlers;
    const receive = internals.receiveReconfigParam.bind(internals);
    internals.receiveReconfigParam = async (parameter) => {
      const { lastTsn, requestSequence, streams } = parameter;
      if (lastTsn === undefined || requestSequence === undefined || streams === undefined) await receive(parameter);
      else this.#requested(lastTsn, requestSequence, streams);
    };
    sctp.onReconfigStreams.subscribe((streams) => handlers.onResetDone(streams));
  }

  /** Resets our direction of a stream, unless that is under way. */
  reset(stream: number): void {
    if (this.#isUnderWay(stream) || this.#sctp.reconfigQueue.includes(stream)) return;
    this.#sctp.reconfigQueue.push(stream);
    this.#sctp.transmitReconfigRequest().catch(() => undefined);
  }

  /**
   * Takes it that the client has carried out our reset of this stream: it uses it again, but its answer is lost or late. What we send
   * on it from now on begins with number 0.
   */
  assumeDone(stream: number): void {
    const responseSequence = this.#sctp.reconfigRequest?.requestSequence;
    if (responseSequence === undefined || !this.#isUnderWay(stream)) return;
    const answer = { type: ANSWER, responseSequence, result: PERFORMED };
    this.#internals.receiveReconfigParam(answer).catch(() => undefined);
  }

  #isUnderWay(stream: number): boolean {
    return this.#sctp.reconfigRequest?.streams.includes(stream) === true;
  }

  /**
   * Leaves a reset that overtook messages of its streams unanswered, so that the client repeats it (section 5.2.2): werift would lose
   * them. One that was carried out before is only answered again (section 5.2.1): the next channel on the stream may be open.
   */
  #requested(lastTsn: number, requestSequence: number, streams: readonly number[]): void {
    const internals = this.#internals;
    if (isAfter(lastTsn, internals.lastReceivedTsn)) return;
    const isNew = isAfter(requestSequence, internals.reconfigResponseSeq);
    if (!isNew && requestSequence !== internals.reconfigResponseSeq) return;
    internals.reconfigResponseSeq = requestSequence;
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32BE(requestSequence, 0);
    bytes.writeUInt32BE(PERFORMED, 4);
    internals.sendReconfigParam({ type: ANSWER, bytes }).catch(() => undefined);
    if (!isNew) return;
    for (const stream of streams) delete internals.inboundStreams[stream];
    this.#handlers.onReset(streams);
  }
}
