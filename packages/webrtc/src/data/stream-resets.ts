import type { SCTP } from 'werift-sctp';
import { isAfter, type SctpInternals } from './mended-sctp.js';

/** Parameter type of a response in a RECONFIG, and its result code for a completed request (RFC 6525 section 4.4). */
const ANSWER = 16;
const PERFORMED = 1;

export interface StreamResetHandlers {
  /** Called with streams on which the client sends no further messages. */
  onReset(streams: readonly number[]): void;
  /** Called with streams that we reset, once the client has confirmed it. */
  onResetDone(streams: readonly number[]): void;
}

/** One-directional stream resets (RFC 6525). Handles the client's requests itself, because werift performs too many. */
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

  /** Resets our direction of a stream, unless a reset is already in progress. */
  reset(stream: number): void {
    if (this.#isUnderWay(stream) || this.#sctp.reconfigQueue.includes(stream)) return;
    this.#sctp.reconfigQueue.push(stream);
    this.#sctp.transmitReconfigRequest().catch(() => undefined);
  }

  /**
   * Assumes that the client has performed our reset of this stream: it already uses the stream again, but its response
   * is lost or late. Our next message on the stream has sequence number 0.
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
   * Leaves a reset unanswered if it overtook messages of its streams, so that the client repeats it (section 5.2.2);
   * werift would lose those messages. A repeated request is only answered again (section 5.2.1), because the stream's
   * next channel may already be open.
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
