import { later, type ActorRef, type ActorSystem, type Behaviour } from '@bloom/actors';
import {
  SINK_SHAPES,
  type InspectionProtocol,
  type SinkProtocol,
  type SinkRef,
  type StreamEnd,
  type StreamEnded,
} from '../protocol/wire.js';

/** A tool that accepts nothing for this long is considered gone, as for a local stream. */
const TAKE_TIMEOUT_MS = 5_000;

export interface RelayOptions {
  system: ActorSystem;
  stream: string;
  /** The tool. */
  sink: SinkRef;
  /** The node that answers. */
  node: string;
  source: ActorRef<InspectionProtocol>;
  onEnd(): void;
}

/**
 * Forwards a stream of another node to a tool that is only linked to this node. It is an actor so that both sides can
 * monitor it.
 */
export class Relay {
  readonly ref: ActorRef<SinkProtocol>;
  readonly #options: RelayOptions;
  readonly #unwatch: (() => void)[];
  #over = false;

  constructor(options: RelayOptions) {
    this.#options = options;
    const { system, sink, source } = options;
    this.ref = system.spawn(this.#behaviour());
    this.#unwatch = [system.monitor(sink, () => this.#close()), system.monitor(source, () => this.abort('lost'))];
  }

  /** Unsubscribes from the source, which then ends the stream. */
  end(_reason: StreamEnd): void {
    const { system, source, stream } = this.#options;
    system.cast(source, { type: 'unsubscribe', stream });
  }

  abort(reason: StreamEnd): void {
    const { stream, node } = this.#options;
    this.#reportEnd({ stream, node, reason, message: null, sent: 0, dropped: 0, costMs: null });
    this.#close();
  }

  /** Closes a relay whose subscription failed. */
  abandon(): void {
    this.#close();
  }

  #reportEnd(end: StreamEnded): void {
    if (!this.#over) this.#options.system.cast(this.#options.sink, { type: 'ended', ...end });
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    for (const unwatch of this.#unwatch) unwatch();
    void this.#options.system.stop(this.ref);
    this.#options.onEnd();
  }

  #behaviour(): Behaviour<SinkProtocol, null> {
    const { system, sink } = this.#options;

    return {
      kind: 'inspection-relay',
      shapes: SINK_SHAPES,
      init: () => null,
      handlers: {
        items: (_state, message) => later(system.call(sink, message, TAKE_TIMEOUT_MS)),
        ended: (_state, message) => {
          this.#reportEnd(message);
          this.#close();
        },
      },
    };
  }
}
