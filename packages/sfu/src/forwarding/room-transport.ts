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
import { asBuffer } from '../media-frames.js';
import type { MediaReport } from '../media-state.js';
import type { DataRouter } from '../data/data-router.js';
import { DataSide } from '../data/data-side.js';
import { PlainData } from '../data/plain-data.js';
import type { MediaContext } from '../context.js';
import { InboundSide } from './inbound-side.js';
import { type MediaSigns, MediaWatch } from './media-watch.js';
import { OutboundSide } from './outbound-side.js';
import type { OutboundTrack } from './outbound-track.js';
import { PacketCapture } from './packet-capture.js';
import type { PublishedTrack } from './published-track.js';
import { QualityMeter } from './quality-meter.js';

/** Interval of checks of the media state, in addition to the events that change it. */
const LOOK_MS = 500;

interface RoomTransportOptions {
  peerId: string;
  relay: RelayCredentials;
  sharesRelay: boolean;
  permissions: MediaPermissions;
  /** True for a track that the client may not receive now. */
  isWithheld(trackId: string): boolean;
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
  readonly #watch = new MediaWatch();
  readonly #quality = new QualityMeter();
  #lookedAtMs = 0;
  #generation = 0;
  #dtlsUp = false;
  #failed = false;
  #closed = false;
  #pendingFault: unknown;
  #packets: PacketCapture | undefined;
  #data: DataSide | undefined;
  /** Present if the client's messages have no header. */
  #plainData: PlainData | undefined;
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
      isWithheld: options.isWithheld,
    });
    this.#permissions = options.permissions;
    this.setPermissions(options.permissions);
    this.#wire = context.port.openTransport({
      id: peerId,
      relay: options.relay,
      sharesRelay: options.sharesRelay,
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
          this.#look();
          this.#cycleEnded();
        },
        onFailed: (reason) => {
          this.#look();
          this.#fail(reason);
        },
        onRefused: (reason, nowMs) => this.inbound.refused(reason, nowMs),
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
    const { generation, ice, fingerprint, passive = false, inbound, outbound, data } = negotiation;
    this.#wire.negotiate({ generation, ice, fingerprint, passive });
    if (data !== undefined) this.#data ??= this.#openData(data, passive);
    this.outbound.negotiate(outbound, generation);
    const wanted = inbound.length + outbound.length > 0 || data !== undefined;
    this.#report(this.#watch.negotiated(wanted, this.#context.world.now()));
    return this.inbound.negotiate(inbound);
  }

  /** Returns the tracks that the client may no longer publish; the caller closes them. */
  setPermissions(permissions: MediaPermissions): PublishedTrack[] {
    const { audio, video, data, subscribe } = permissions;
    this.#permissions = permissions;
    this.#options.data.permit(this.peerId, { send: data, receive: subscribe });
    this.#plainData?.permit(data);
    this.outbound.setReceives(subscribe);
    return this.inbound.setAccepted({ audio, video });
  }

  /** Sends a message to a client whose messages have no header. */
  sendPacket(label: string, data: Uint8Array): void {
    this.#plainData?.send(label, asBuffer(data));
  }

  #openData(data: NonNullable<TransportNegotiation['data']>, passive: boolean): DataSide {
    const { peerId, emit } = this.#options;
    if (data !== true) {
      this.#plainData = new PlainData(
        {
          ...('opens' in data ? { labels: [], opens: data.opens } : { labels: data }),
          maySend: this.#permissions.data,
          room: this.#options.data,
        },
        {
          message: (label, packet) => emit({ type: 'dataPacket', peerId, label, data: packet }),
          channelClosed: (label, reason) => emit({ type: 'dataChannelClosed', peerId, label, reason }),
        },
        this.#context,
      );
    }
    return new DataSide(this.#context, {
      peerId,
      wire: this.#wire,
      router: this.#plainData ?? this.#options.data,
      permissions: () => ({ send: this.#permissions.data, receive: this.#permissions.subscribe }),
      passive,
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
      if (nowMs - this.#lookedAtMs >= LOOK_MS) this.#look();
      if (this.#packets?.isForgotten(nowMs) === true) this.#watchPackets(undefined);
    } catch (error) {
      this.#context.world.log.error('media.transport_fault', { peerId: this.peerId, error });
      this.#fail('Internal server error');
    }
  }

  /** Checks the media state and reports a change. */
  #look(): void {
    const nowMs = this.#context.world.now();
    this.#lookedAtMs = nowMs;
    this.#report(this.#watch.look(this.#signs(), nowMs));
  }

  /** Reports how well media flows, if that has changed since the last call. */
  judge(): void {
    const { state } = this.#watch.report;
    if (this.#failed || this.#closed || state === 'idle' || state === 'connecting') return;
    const signs = { ...this.inbound.qualitySigns(), ...this.outbound.qualitySigns() };
    const quality = this.#quality.look(signs, state !== 'connected');
    if (quality !== undefined) this.#options.emit({ type: 'connectionQuality', peerId: this.peerId, quality });
  }

  #signs(): MediaSigns {
    const { pathState, counters } = this.#wire;
    const { dtls, remoteAddress, relayed, protocol, secure } = pathState;
    return {
      checks: counters.bindingRequestsReceived,
      packets: counters.packetsReceived,
      dtls,
      path: remoteAddress === undefined ? undefined : relayed ? `relay-${secure ? 'tls' : protocol}` : protocol,
      lacksMedia: this.inbound.lacksMedia,
    };
  }

  #report(media: MediaReport | undefined): void {
    if (media !== undefined) this.#options.emit({ type: 'mediaState', peerId: this.peerId, media });
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
    const inboundDropped = this.inbound.droppedStats();
    return {
      peerId: this.peerId,
      iceState: pathState.ice === 'closed' ? 'silent' : pathState.ice,
      dtlsState: this.#failed ? 'failed' : pathState.dtls,
      media: this.#watch.report,
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
      ...(inboundDropped.length === 0 ? {} : { inboundDropped }),
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
