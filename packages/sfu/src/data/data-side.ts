import { DataLink, type DataLinkHandlers, type PeerTransport } from '@bloom/webrtc';
import type { MediaContext } from '../context.js';
import type { TransportStats } from '../media-engine.js';
import type { DataRouter } from './data-router.js';

interface DataSideOptions {
  peerId: string;
  wire: Pick<PeerTransport, 'sendData' | 'inTurn'>;
  router: Pick<DataRouter, 'join' | 'leave' | 'opened' | 'closed' | 'message' | 'channels'>;
  permissions: () => { send: boolean; receive: boolean };
  /** The client is the DTLS server. */
  passive: boolean;
}

/** Data channels of one peer: connects its SCTP association to the room's router. */
export class DataSide {
  readonly #context: MediaContext;
  readonly #options: DataSideOptions;
  readonly #link: DataLink;

  constructor(context: MediaContext, options: DataSideOptions) {
    this.#context = context;
    this.#options = options;
    const { peerId, router, wire, passive } = options;
    const handlers: DataLinkHandlers = {
      send: (packet) => void wire.sendData(packet),
      inTurn: (step) => wire.inTurn(step),
      onUp: () => router.join(peerId, link, options.permissions()),
      onOpened: (stream, channel) => router.opened(peerId, stream, channel, context.world.now()),
      onMessage: (stream, isText, frame) => router.message(peerId, stream, isText, frame, context.world.now()),
      onClosed: (stream) => router.closed(peerId, stream),
      onDropped: (messages) => (context.dropped.data_backlog += messages),
      onDown: (cause) => {
        router.leave(peerId);
        const { log } = context.world;
        // Whoever closes a connection ends its data channels too.
        if (cause === 'client') log.info('data.association_ended', { peerId, cause });
        else log.warn('data.association_ended', { peerId, cause });
      },
    };
    const link = new DataLink(handlers, { isDtlsClient: passive });
    this.#link = link;
  }

  /** Takes the plaintext of a DTLS record: one SCTP packet. */
  receive(packet: Buffer): void {
    if (!this.#link.receive(packet)) this.#context.dropped.data_malformed++;
  }

  /** Called every 20 ms. */
  tick(): void {
    this.#link.tick();
  }

  stats(): NonNullable<TransportStats['data']> {
    return {
      waitingBytes: this.#link.waitingBytes,
      channels: this.#options.router.channels(this.#options.peerId),
    };
  }

  close(): void {
    this.#options.router.leave(this.#options.peerId);
    this.#link.end();
  }
}
