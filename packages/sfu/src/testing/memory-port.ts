/** Transports without sockets, for tests: packets are really sealed and opened, time is virtual, no network. */
import { silentLog } from '@bloom/log';
import { RtcpReader, RtpView } from '@bloom/rtp';
import {
  createPacketSealer,
  type PathState,
  type PeerTransport,
  type PeerTransportOptions,
  SrtpReceiveSession,
  SrtpSendSession,
  type TransportParameters,
} from '@bloom/webrtc';
import { MediaContext } from '../context.js';
import { ForwardingRoom } from '../forwarding/room.js';
import type { RoomCommand, RoomReport } from '../room-command.js';
import type { InboundTrack, MediaRoomEvent, OutboundSlot, RoomMediaStats, Variant } from '../media-engine.js';

const TICK_MS = 20;

/** A received packet, taken apart. */
export interface SeenPacket {
  atMs: number;
  bytes: Buffer;
  ssrc: number;
  payloadType: number;
  sequence: number;
  timestamp: number;
  marker: boolean;
  payload: Buffer;
  isPadding: boolean;
  extension(id: number): Buffer | undefined;
}

/** Linear congruential, so every run gets the same numbers. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state;
  };
}

/** One client: packets it sends arrive immediately, packets it receives are opened and kept. */
export class MemoryPeer implements PeerTransport {
  readonly #world: MemoryWorld;
  readonly #options: PeerTransportOptions;
  readonly id: string;
  readonly counters = {
    packetsReceived: 0,
    bytesReceived: 0,
    packetsSent: 0,
    bytesSent: 0,
    bindingRequestsReceived: 0,
    bindingResponsesSent: 0,
  };
  pathState: PathState = { ice: 'new', dtls: 'new', generation: 0, relayed: false, protocol: 'udp', secure: false };
  sendSession: SrtpSendSession | undefined;
  readonly packets: SeenPacket[] = [];
  readonly rtcp: Buffer[] = [];
  closed = false;
  /** Set to inspect packets as they arrive instead of keeping them. */
  onPacket: ((packet: SeenPacket) => void) | undefined;
  readonly #keys = { masterKey: Buffer.alloc(16, 7), masterSalt: Buffer.alloc(14, 9) };
  #opener = new SrtpReceiveSession(this.#keys);
  #generation = 0;

  constructor(world: MemoryWorld, options: PeerTransportOptions) {
    this.#world = world;
    this.#options = options;
    this.id = options.id;
  }

  readonly sink = {
    headroom: 0,
    send: (datagram: Buffer): boolean => {
      if (this.closed) return true;
      const bytes = Buffer.from(datagram);
      const end = this.#opener.open(bytes);
      if (end < 0) throw new Error(`peer ${this.id} cannot open a packet: ${end}`);
      this.counters.packetsSent++;
      this.counters.bytesSent += datagram.length;
      const packet = see(bytes, end, this.#world.nowMs);
      if (this.onPacket === undefined) this.packets.push(packet);
      else this.onPacket(packet);
      return true;
    },
  };

  watchPackets(): void {
    throw new Error('packets are watched on a real port');
  }

  negotiate(parameters: TransportParameters): void {
    this.#generation = parameters.generation;
  }

  sendRtp(): boolean {
    throw new Error('packets are sealed by the sealer');
  }

  sendRtcp(compound: Buffer): boolean {
    if (this.sendSession === undefined || this.closed) return false;
    this.rtcp.push(Buffer.from(compound));
    return true;
  }

  sendData(): boolean {
    throw new Error('data channels are tested with their link');
  }

  inTurn(step: () => void): boolean {
    step();
    return true;
  }

  close(): void {
    this.closed = true;
  }

  /** Completes ICE of the last negotiation, and DTLS the first time. */
  connect(): void {
    const generation = this.#generation;
    this.pathState = { ...this.pathState, ice: 'connected', dtls: 'connected', generation, remoteAddress: '192.0.2.1' };
    this.check();
    this.#options.handlers.onIceConnected(this.#generation);
    if (this.sendSession !== undefined) return;
    this.sendSession = new SrtpSendSession(this.#keys);
    this.#options.handlers.onDtlsConnected();
  }

  /** Accepts packets again that it has already received. */
  forgetReplays(): void {
    this.#opener = new SrtpReceiveSession(this.#keys);
  }

  /** Proves its path, as clients do every few seconds. */
  check(): void {
    this.counters.bindingRequestsReceived++;
  }

  fail(reason: string): void {
    this.#options.handlers.onFailed(reason);
  }

  send(packet: Buffer): void {
    const own = Buffer.from(packet);
    this.#options.handlers.onRtp(own, 0, own.length, this.#world.nowMs);
  }

  sendControl(compound: Buffer): void {
    const own = Buffer.from(compound);
    this.#options.handlers.onRtcp(own, 0, own.length, this.#world.nowMs);
  }

  /** Walks all RTCP packets received so far. */
  forEachRtcp(visit: (reader: RtcpReader) => void): void {
    const reader = new RtcpReader();
    for (const compound of this.rtcp) {
      reader.open(compound);
      while (reader.next()) visit(reader);
    }
  }
}

function see(bytes: Buffer, end: number, atMs: number): SeenPacket {
  const view = new RtpView();
  if (!view.parse(bytes, 0, end)) throw new Error('a forwarded packet is no RTP');
  return {
    atMs,
    bytes: bytes.subarray(0, end),
    ssrc: view.ssrc,
    payloadType: view.payloadType,
    sequence: view.sequence,
    timestamp: view.timestamp,
    marker: view.marker,
    payload: bytes.subarray(view.payloadStart, view.payloadEnd),
    isPadding: view.isPaddingOnly,
    extension: (id) =>
      view.findExtension(id) ? bytes.subarray(view.foundStart, view.foundStart + view.foundLength) : undefined,
  };
}

/** A room over memory transports, with a manual clock. */
export class MemoryWorld {
  nowMs = 10_000;
  readonly events: MediaRoomEvent[] = [];
  /** All reports except events. */
  readonly reports: RoomReport[] = [];
  readonly peers = new Map<string, MemoryPeer>();
  readonly context: MediaContext;
  readonly room: ForwardingRoom;
  #generation = 0;
  #lastNumber = 0;

  constructor(log = silentLog) {
    const world = { now: () => this.nowMs, random: seededRandom(42), log };
    const port = {
      openTransport: (options: PeerTransportOptions): PeerTransport => {
        const peer = new MemoryPeer(this, options);
        this.peers.set(options.id, peer);
        return peer;
      },
    };
    this.context = new MediaContext(world, port, createPacketSealer());
    this.room = new ForwardingRoom(this.context, 'room', (report) => {
      if (report.type === 'event') this.events.push(report.event);
      else this.reports.push(report);
    });
  }

  join(peerId: string, tracks: { inbound?: InboundTrack[]; outbound?: OutboundSlot[] } = {}): MemoryPeer {
    const relay = { username: peerId, password: 'secret' };
    this.apply({ type: 'openTransport', peerId, relay, transport: this.newNumber() });
    this.negotiate(peerId, tracks);
    const peer = this.peers.get(peerId)!;
    peer.connect();
    return peer;
  }

  /** Runs one cycle up to the answer; the peer's `connect` ends it. */
  negotiate(peerId: string, tracks: { inbound?: InboundTrack[]; outbound?: OutboundSlot[] }): void {
    this.#generation++;
    const negotiation = {
      generation: this.#generation,
      ice: { localUfrag: 'l', localPwd: 'lp', remoteUfrag: 'r', remotePwd: 'rp' },
      fingerprint: { algorithm: 'sha-256', value: 'AA' },
      inbound: tracks.inbound ?? [],
      outbound: tracks.outbound ?? [],
    };
    this.apply({ type: 'negotiate', peerId, negotiation });
  }

  apply(command: RoomCommand): unknown {
    return this.room.apply(command);
  }

  newNumber(): number {
    return ++this.#lastNumber;
  }

  setTargetVariant(peerId: string, trackId: string, variant: Variant): void {
    this.apply({ type: 'setTargetVariant', peerId, trackId, variant });
  }

  stats(): RoomMediaStats {
    return this.apply({ type: 'stats' }) as RoomMediaStats;
  }

  advance(ms: number, each?: (nowMs: number) => void): void {
    const until = this.nowMs + ms;
    while (this.nowMs < until) {
      this.nowMs++;
      each?.(this.nowMs);
      if (this.nowMs % TICK_MS === 0) this.room.tick(this.nowMs);
    }
  }

  switches(peerId: string): string[] {
    return this.events.flatMap((event) =>
      event.type === 'encodingSwitched' && event.peerId === peerId
        ? [`${event.trackId} ${event.variant} ${event.reason}`]
        : [],
    );
  }
}
