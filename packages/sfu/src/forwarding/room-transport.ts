import { RtcpType } from '@bloom/rtp';
import type { PeerTransport } from '@bloom/webrtc';
import type {
  CapturedPackets,
  MediaPermissions,
  MediaRoomEvent,
  RelayCredentials,
  TransportNegotiation,
  TransportStats,
} from '../media-engine.js';
import type { DataRouter } from '../data/data-router.js';
import { DataSide } from '../data/data-side.js';
import type { MediaContext } from './context.js';
import { InboundSide } from './inbound-side.js';
import { OutboundSide } from './outbound-side.js';
import type { OutboundTrack } from './outbound-track.js';
import { PacketCapture } from './packet-capture.js';
import type { PublishedTrack } from './published-track.js';

interface RoomTransportOptions {
  peerId: string;
  relay: RelayCredentials;
  permissions: MediaPermissions;
  data: DataRouter;
  emit(event: MediaRoomEvent): void;
  slotLive(slot: OutboundTrack): void;
  slotGone(slot: OutboundTrack): void;
}

/** One peer of a room: its transport with a receiving and a sending side. */
export class RoomTransport {
  readonly #context: MediaContext;
  readonly #options: RoomTransportOptions;
  readonly inbound: InboundSide;
  readonly outbound: OutboundSide;
  readonly #wire: PeerTransport;
  #generation = 0;
  #dtlsUp = false;
  #failed = false;
  #closed = false;
  #pendingFault: unknown;
  #packets: PacketCapture | undefined;
  #data: DataSide | undefined;
  #permissions: MediaPermissions;

  constructor(context: MediaContext, options: RoomTransportOptions) {
    this.#context = context;
    this.#options = options;
    const { peerId, emit } = options;
    const sendRtcp = (): void => {
      this.#wire.sendRtcp(this.#context.writer.bytes());
    };
    this.inbound = new InboundSide(context, { peerId, localSsrc: context.world.random(), sendRtcp, emit });
    this.outbound = new OutboundSide(context, {
      peerId,
      sendRtcp,
      emit,
      openStream: (ssrc) => {
        const { sendSession } = this.#wire;
        return sendSession === undefined ? undefined : context.sealer.openStream(sendSession, ssrc, this.#wire.sink);
      },
      fault: (error) => (this.#pendingFault ??= error),
      slotLive: options.slotLive,
      slotGone: options.slotGone,
    });
    this.#permissions = options.permissions;
    this.setPermissions(options.permissions);
    this.#wire = context.port.openTransport({
      id: peerId,
      relay: options.relay,
      handlers: {
        onRtp: (buffer, start, end, nowMs) => this.inbound.receive(buffer, start, end, nowMs),
        onRtcp: (buffer, start, end, nowMs) => this.#receiveRtcp(buffer, start, end, nowMs),
        onIceConnected: (generation) => {
          this.#generation = Math.max(this.#generation, generation);
          emit({ type: 'iceConnected', peerId, generation });
          this.#cycleEnded();
        },
        onDtlsConnected: () => {
          this.#dtlsUp = true;
          emit({ type: 'dtlsConnected', peerId });
          this.#cycleEnded();
        },
        onFailed: (reason) => this.#fail(reason),
        onSilent: () => emit({ type: 'transportSilent', peerId }),
        onData: (plain) => this.#data?.receive(plain),
      },
    });
  }

  /** Reports an event of this transport. */
  emit(event: MediaRoomEvent): void {
    this.#options.emit(event);
  }

  get peerId(): string {
    return this.#options.peerId;
  }

  negotiate(negotiation: TransportNegotiation): { added: PublishedTrack[]; removed: PublishedTrack[] } {
    const { generation, ice, fingerprint, inbound, outbound, data } = negotiation;
    this.#wire.negotiate({ generation, ice, fingerprint });
    if (data === true) this.#data ??= this.#openData();
    this.outbound.negotiate(outbound, generation);
    return this.inbound.negotiate(inbound);
  }

  /** Returns the tracks that the client may no longer publish; the caller closes them. */
  setPermissions(permissions: MediaPermissions): PublishedTrack[] {
    const { audio, video, data, subscribe } = permissions;
    this.#permissions = permissions;
    this.#options.data.permit(this.peerId, { send: data, receive: subscribe });
    this.outbound.setReceives(subscribe);
    return this.inbound.setAccepted({ audio, video });
  }

  #openData(): DataSide {
    return new DataSide(this.#context, {
      peerId: this.peerId,
      wire: this.#wire,
      router: this.#options.data,
      permissions: () => ({ send: this.#permissions.data, receive: this.#permissions.subscribe }),
    });
  }

  #cycleEnded(): void {
    if (!this.#dtlsUp || this.#failed) return;
    this.inbound.pathReady(this.#context.world.now());
    this.outbound.goLive(this.#generation);
  }

  #receiveRtcp(buffer: Buffer, start: number, end: number, nowMs: number): void {
    const { reader } = this.#context;
    reader.open(buffer, start, end);
    while (reader.next()) {
      if (reader.type === RtcpType.SR) {
        this.inbound.senderReport(reader, nowMs);
        this.outbound.reportBlocks(reader, nowMs);
      } else if (reader.type === RtcpType.RR) {
        this.outbound.reportBlocks(reader, nowMs);
      } else if (reader.type === RtcpType.RTPFB || reader.type === RtcpType.PSFB) {
        this.outbound.feedback(reader, nowMs);
      }
    }
  }

  tick(nowMs: number): void {
    if (this.#failed || this.#closed) return;
    try {
      if (this.#pendingFault !== undefined) throw this.#pendingFault;
      this.inbound.tick(nowMs, this.outbound.roundTripMs);
      if (this.#dtlsUp) this.outbound.tick(nowMs);
      this.#data?.tick();
      if (this.#packets?.isForgotten(nowMs) === true) this.#watchPackets(undefined);
    } catch (error) {
      this.#context.world.log.error('media.transport_fault', { peerId: this.peerId, error });
      this.#fail('Internal server error');
    }
  }

  #fail(reason: string): void {
    if (this.#failed || this.#closed) return;
    this.#failed = true;
    this.outbound.stop();
    this.#data?.close();
    this.#options.emit({ type: 'transportFailed', peerId: this.peerId, reason });
  }

  stats(): TransportStats {
    const { pathState, counters } = this.#wire;
    const estimationBps = this.outbound.estimationBps;
    return {
      peerId: this.peerId,
      iceState: pathState.ice === 'closed' ? 'silent' : pathState.ice,
      dtlsState: this.#failed ? 'failed' : pathState.dtls,
      ...(pathState.remoteAddress === undefined ? {} : { remoteAddress: pathState.remoteAddress }),
      ...(pathState.remotePort === undefined ? {} : { remotePort: pathState.remotePort }),
      protocol: pathState.protocol,
      bytesReceived: counters.bytesReceived,
      bytesSent: counters.bytesSent,
      packetsReceived: counters.packetsReceived,
      packetsSent: counters.packetsSent,
      bindingRequestsReceived: counters.bindingRequestsReceived,
      bindingResponsesSent: counters.bindingResponsesSent,
      ...(estimationBps === undefined ? {} : { estimationBps }),
      inbound: this.inbound.stats(),
      outbound: this.outbound.stats(),
      ...(this.#data === undefined ? {} : { data: this.#data.stats() }),
    };
  }

  /** See `MediaRoom.capturePackets`. */
  capturePackets(end: boolean): CapturedPackets {
    if (this.#packets === undefined) this.#watchPackets(new PacketCapture(this.#context.world.now));
    const captured = (this.#packets as PacketCapture).take();
    if (end) this.#watchPackets(undefined);

    return captured;
  }

  #watchPackets(packets: PacketCapture | undefined): void {
    this.#packets = packets;
    this.#wire.watchPackets(packets?.watch);
  }

  /** Closes the transport and returns the tracks that end with it. Idempotent. */
  close(): PublishedTrack[] {
    if (this.#closed) return [];
    this.#closed = true;
    this.outbound.close();
    const tracks = this.inbound.close();
    this.#data?.close();
    this.#wire.close();
    return tracks;
  }
}
