import type { DtlsCertificate } from '../dtls/certificate.js';
import type { DtlsAssociation, DtlsEvents } from '../dtls/dtls-association.js';
import { DtlsClientSession } from '../dtls/dtls-client-session.js';
import { DtlsSession } from '../dtls/dtls-session.js';
import type { SrtpKeyMaterial } from '../dtls/key-schedule.js';
import { type CheckOutcome, CONSENT_TIMEOUT_MS, IceLiteAgent, type UfragRegistry } from '../ice/ice-lite-agent.js';
import type { DropCounters } from '../drops.js';
import type { Allocation, RelayOwner } from '../relay/allocation.js';
import type { RelayFront } from '../relay/relay-front.js';
import { AUTH_TAG_BYTES } from '../srtp/key-derivation.js';
import { openFailureName, SrtpReceiveSession } from '../srtp/receive-session.js';
import { SRTCP_OVERHEAD, SrtpSendSession } from '../srtp/send-session.js';
import type { TransportAddress } from '../stun/address.js';
import { StunMessage } from '../stun/message.js';
import type {
  PacketWatcher,
  PathState,
  PeerTransport,
  PeerTransportHandlers,
  PeerTransportOptions,
  TransportCounters,
  TransportParameters,
} from './api.js';
import { DirectPath, type MediaPath, RelayPath, sendPacket } from './media-path.js';
import { Counters, PathSink } from './path-sink.js';
import type { DirectOwner, Source } from './source-table.js';
import type { TurnQueue } from './turn-queue.js';

/** Bound on the direct sources per transport; the one checked least recently makes room. */
const MAX_DIRECT_PATHS = 16;
const DIRECT_PATH_LIFETIME_MS = 60_000;
/** Bound on one client's datagrams in the port's shared handshake queue: a flight has at most five. */
const MAX_WAITING_DTLS = 16;
/** Bound on one client's data datagrams in the port's shared queue. */
const MAX_WAITING_DATA = 128;
/** First byte of a DTLS application data record. */
const APPLICATION_DATA = 23;

/** The port as seen by its transports. */
export interface TransportHost {
  readonly relay: RelayFront;
  readonly ufrags: UfragRegistry;
  readonly certificate: DtlsCertificate;
  readonly handshakes: TurnQueue;
  readonly data: TurnQueue;
  readonly drops: DropCounters;
  /** Our advertised address, which is the source of all relayed packets. */
  readonly relayed: TransportAddress;
  clock(): number;
  sourceChanged(source: Source): void;
  /** Called when the kernel still uses this slot's bytes. */
  slotKept(slot: number): void;
  closed(transport: Transport): void;
}

/** One peer's transport: ICE-lite agent, DTLS association and SRTP keys over the nominated path. */
export class Transport implements PeerTransport, RelayOwner, DirectOwner {
  readonly #host: TransportHost;
  readonly id: string;
  readonly username: string;
  readonly counters: TransportCounters;
  readonly sink: PathSink;
  sendSession: SrtpSendSession | undefined;
  #receiveSession: SrtpReceiveSession | undefined;
  readonly #handlers: PeerTransportHandlers;
  readonly #ice: IceLiteAgent<MediaPath>;
  #dtls: DtlsAssociation;
  readonly #relayPaths = new Map<Allocation, RelayPath>();
  readonly #direct = new Map<DirectPath, Source>();
  /** Path of the last DTLS datagram; used until a pair is nominated. */
  #dtlsPath: MediaPath | undefined;
  #waitingDtls = 0;
  #waitingData = 0;
  /** Packets received from the client as of the last sweep, and the time when that number last increased. */
  #receivedBefore = 0;
  #receivedAtMs = 0;
  #usable = true;
  #closed = false;

  constructor(host: TransportHost, options: PeerTransportOptions) {
    this.#host = host;
    this.id = options.id;
    this.username = options.relay.username;
    this.#handlers = options.handlers;
    const ice = new IceLiteAgent<MediaPath>({ registry: host.ufrags });
    this.#ice = ice;
    this.counters = new Counters(ice);
    this.sink = new PathSink(this.counters, host.slotKept);
    this.#dtls = new DtlsSession(host.certificate, this.#dtlsEvents());
  }

  get pathState(): PathState {
    const path = this.sink.path;
    const state: PathState = {
      ice: this.#closed ? 'closed' : this.#ice.state,
      dtls: this.#dtls.state,
      generation: this.#ice.generation,
      relayed: path?.relayed ?? false,
      protocol: path?.flow.protocol ?? 'udp',
      secure: path?.flow.secure ?? false,
    };
    if (path !== undefined) {
      state.remoteAddress = path.flow.address;
      state.remotePort = path.flow.port;
    }
    return state;
  }

  negotiate({ generation, ice, fingerprint, passive = false }: TransportParameters): void {
    if (this.#closed) return;
    if (passive && this.#dtls.state === 'new') {
      this.#dtls = new DtlsClientSession(this.#host.certificate, this.#dtlsEvents());
    }
    this.#dtls.expectFingerprint(fingerprint);
    const unchanged = this.#ice.accept({ generation, ...ice }, this.#host.clock());
    // Without an ICE restart there is no nomination to wait for: the cycle completes right after this call.
    if (unchanged) {
      queueMicrotask(() => {
        if (!this.#closed) this.#guard(() => this.#handlers.onIceConnected(generation));
      });
    }
  }

  watchPackets(watcher: PacketWatcher | undefined): void {
    this.sink.watcher = watcher;
  }

  sendRtp(packet: Buffer): boolean {
    return this.#seal(packet, AUTH_TAG_BYTES, (session, buffer, start, end) => session.sealRtp(buffer, start, end));
  }

  sendRtcp(compound: Buffer): boolean {
    return this.#seal(compound, SRTCP_OVERHEAD, (session, buffer, start, end) => session.sealRtcp(buffer, start, end));
  }

  sendData(plain: Buffer): boolean {
    return !this.#closed && this.#dtls.send(plain);
  }

  inTurn(step: () => void): boolean {
    return this.#host.data.add(step);
  }

  close(): void {
    if (this.#closed) return;
    this.#dtls.close();
    this.#closed = true;
    this.#usable = false;
    this.#use(undefined);
    this.#ice.close();
    for (const path of this.#direct.keys()) this.dropDirect(path);
    this.#host.relay.removeUser(this.username, this);
    this.#receiveSession = undefined;
    this.sendSession = undefined;
    this.#host.closed(this);
  }

  // --- from the relay

  onRelayed(allocation: Allocation, payload: Buffer, nowMs: number): void {
    let path = this.#relayPaths.get(allocation);
    if (path === undefined) {
      path = new RelayPath(allocation, this.#host.relay);
      this.#relayPaths.set(allocation, path);
    }
    const first = payload[0] ?? 0xff;
    if (first > 3) {
      this.receive(path, payload, nowMs);
      return;
    }
    const message = StunMessage.parse(payload);
    if (message === undefined) {
      this.#host.drops.malformed++;
      return;
    }
    this.#check(message, path, this.#host.relayed, nowMs);
  }

  onAllocationGone(allocation: Allocation): void {
    const path = this.#relayPaths.get(allocation);
    if (path === undefined) return;
    this.#relayPaths.delete(allocation);
    this.#forget(path);
  }

  isInUse(allocation: Allocation): boolean {
    const { path } = this.#ice;
    return path !== undefined && this.#relayPaths.get(allocation) === path;
  }

  // --- from the port

  /** Handles a check that quotes one of our user fragments and did not come through a relay. */
  onDirectCheck(message: StunMessage, source: Source, nowMs: number): void {
    const former = source.direct;
    const known = former?.owner === this ? former.path : undefined;
    // A check's source address can be forged: it must not take over the path of another client that is still connected.
    if (former !== undefined && known === undefined && former.owner.holds(former.path)) {
      this.#host.drops.unauthenticated++;
      return;
    }
    const path = known ?? new DirectPath(source.flow);
    const outcome = this.#check(message, path, source.flow.source, nowMs);
    if (!outcome.accepted || known !== undefined || this.#closed) return;
    former?.owner.dropDirect(former.path);
    source.direct = { owner: this, path };
    this.#direct.set(path, source);
    this.#host.sourceChanged(source);
    if (this.#direct.size > MAX_DIRECT_PATHS) this.#dropStalest();
  }

  dropDirect(path: DirectPath): void {
    const source = this.#direct.get(path);
    this.#direct.delete(path);
    this.#forget(path);
    if (source === undefined || source.direct?.path !== path) return;
    source.direct = undefined;
    this.#host.sourceChanged(source);
  }

  holds(path: DirectPath): boolean {
    return this.sink.path === path && this.#dtls.state === 'connected';
  }

  /** Takes DTLS, SRTP or SRTCP received on one of our paths. */
  receive(path: MediaPath, packet: Buffer, nowMs: number): void {
    const { counters } = this;
    const host = this.#host;
    const first = packet[0] ?? 0;
    if (path.checkedAtMs === 0) {
      host.drops.unknown_source++;
    } else if (first >= 128 && first <= 191) {
      counters.packetsReceived++;
      counters.bytesReceived += packet.length;
      this.sink.watcher?.('in', packet, 0, packet.length);
      this.#receiveMedia(packet, nowMs);
    } else if (first >= 20 && first <= 63) {
      counters.packetsReceived++;
      counters.bytesReceived += packet.length;
      if (!this.#queueDtls(path, packet, nowMs)) host.drops.rate_limited++;
    } else {
      host.drops.malformed++;
    }
  }

  /** Runs the handshake's timers. Call several times a second. */
  sweepHandshake(nowMs: number): void {
    if (this.#dtls.isHandshaking) this.#dtls.sweep(nowMs);
  }

  /** Extends the time limits by a pause of this process, during which nothing could be read. */
  paused(ms: number, nowMs: number): void {
    this.#ice.paused(ms, nowMs);
    this.#dtls.paused(ms, nowMs);
    this.#receivedAtMs = Math.min(nowMs, this.#receivedAtMs + ms);
  }

  /** Runs all other timers. Call about once a second. */
  sweep(nowMs: number): void {
    const { packetsReceived } = this.counters;
    if (packetsReceived !== this.#receivedBefore) {
      this.#receivedBefore = packetsReceived;
      this.#receivedAtMs = nowMs;
    }
    if (this.#ice.sweep(nowMs)) this.#guard(() => this.#handlers.onSilent());
    // RFC 7675 section 5.1: a new owner of the address may not want the media. A client that only sends indications to
    // keep its path open is still active as long as its reports arrive.
    const silent = this.#ice.state === 'silent' && nowMs - this.#receivedAtMs >= CONSENT_TIMEOUT_MS;
    if (silent && this.sink.path !== undefined) this.#use(undefined);
    for (const path of this.#direct.keys()) {
      if (path !== this.#ice.path && nowMs - path.checkedAtMs > DIRECT_PATH_LIFETIME_MS) this.dropDirect(path);
    }
  }

  #check(message: StunMessage, path: MediaPath, mapped: TransportAddress, nowMs: number): CheckOutcome {
    const before = this.#ice.state;
    const outcome = this.#ice.handleCheck(message, { path, mapped }, nowMs);
    if (outcome.reply === undefined) {
      this.#host.drops.unauthenticated++;
      return outcome;
    }
    sendPacket(path, outcome.reply);
    if (!outcome.accepted) return outcome;
    path.checkedAtMs = nowMs;
    const { nominated } = outcome;
    if (nominated !== undefined && this.#usable) {
      this.#use(path);
      this.#dtls.start(nowMs);
    }
    if (nominated?.first === true) this.#guard(() => this.#handlers.onIceConnected(nominated.generation));
    if (before === 'silent' && this.#ice.state === 'connected') {
      if (this.#usable) this.#use(this.#ice.path);
      this.#guard(() => this.#handlers.onActive?.());
    }
    return outcome;
  }

  #dtlsEvents(): DtlsEvents {
    return {
      send: (datagram) => this.#sendDtls(datagram),
      onConnected: (keys) => this.#keysAgreed(keys),
      onFailed: (reason) => this.#fail(reason),
      onClosed: () => {
        this.#usable = false;
        this.#use(undefined);
      },
      onData: (plain) => this.#guard(() => this.#handlers.onData?.(plain)),
    };
  }

  #queueDtls(path: MediaPath, packet: Buffer, nowMs: number): boolean {
    if (packet[0] === APPLICATION_DATA && this.#handlers.onData !== undefined) return this.#queueData(packet, nowMs);
    if (this.#waitingDtls >= MAX_WAITING_DTLS) return false;
    this.#waitingDtls++;
    const isQueued = this.#host.handshakes.add(() => {
      this.#waitingDtls--;
      this.#receiveDtls(path, packet, nowMs);
    });
    if (!isQueued) this.#waitingDtls--;
    return isQueued;
  }

  #queueData(packet: Buffer, nowMs: number): boolean {
    if (this.#waitingData >= MAX_WAITING_DATA) return false;
    this.#waitingData++;
    const isQueued = this.#host.data.add(() => {
      this.#waitingData--;
      const reason = this.#closed ? undefined : this.#dtls.receive(packet, nowMs);
      if (reason !== undefined) this.#host.drops[reason]++;
    });
    if (!isQueued) this.#waitingData--;
    return isQueued;
  }

  #receiveDtls(path: MediaPath, packet: Buffer, nowMs: number): void {
    if (this.#closed) return;
    this.#dtlsPath = path;
    const reason = this.#dtls.receive(packet, nowMs);
    if (reason !== undefined) this.#host.drops[reason]++;
  }

  /** Takes RTP or RTCP (first byte 128-191). RTCP has payload type 64-95 with marker (RFC 5761 section 4, RFC 7983). */
  #receiveMedia(packet: Buffer, nowMs: number): void {
    const session = this.#receiveSession;
    if (session === undefined || !this.#usable) {
      this.#host.drops.no_keys++;
      return;
    }
    const type = packet[1] ?? 0;
    const isRtcp = type >= 192 && type <= 223;
    const end = isRtcp ? session.openRtcp(packet, 0, packet.length) : session.open(packet, 0, packet.length);
    if (end < 0) {
      const reason = openFailureName(end);
      this.#host.drops[reason]++;
      this.#guard(() => this.#handlers.onRefused?.(reason, nowMs));
      return;
    }
    try {
      if (isRtcp) this.#handlers.onRtcp(packet, 0, end, nowMs);
      else this.#handlers.onRtp(packet, 0, end, nowMs);
    } catch {
      this.#host.drops.handler_error++;
      this.#fail('an internal fault while media was handled');
    }
  }

  #keysAgreed({ localKey, localSalt, remoteKey, remoteSalt }: SrtpKeyMaterial): void {
    this.sendSession = new SrtpSendSession({ masterKey: localKey, masterSalt: localSalt });
    this.#receiveSession = new SrtpReceiveSession({ masterKey: remoteKey, masterSalt: remoteSalt });
    this.#guard(() => this.#handlers.onDtlsConnected());
  }

  #sendDtls(datagram: Buffer): void {
    const path = this.sink.path ?? this.#dtlsPath;
    if (path === undefined) return;
    this.#countSent(datagram.length);
    sendPacket(path, datagram);
  }

  /** Seals and sends a copy of one packet, with room for the path's framing. */
  #seal(plain: Buffer, overhead: number, seal: Seal): boolean {
    const path = this.sink.path;
    if (path === undefined || this.sendSession === undefined) return false;
    const { headroom } = path;
    const datagram = Buffer.allocUnsafe(headroom + plain.length + overhead);
    plain.copy(datagram, headroom);
    seal(this.sendSession, datagram, headroom, headroom + plain.length);
    this.#countSent(datagram.length - headroom);
    path.exit.send(datagram);
    return true;
  }

  #countSent(bytes: number): void {
    this.counters.packetsSent++;
    this.counters.bytesSent += bytes;
  }

  #fail(reason: string): void {
    if (!this.#usable) return;
    this.#usable = false;
    this.#use(undefined);
    this.#guard(() => this.#handlers.onFailed(reason));
  }

  /** Switches media to this path. */
  #use(path: MediaPath | undefined): void {
    const before = this.sink.path;
    if (before === path) return;
    this.sink.path = path;
    path?.flow.chosen?.();
    before?.flow.left?.();
  }

  #forget(path: MediaPath): void {
    this.#ice.forget(path);
    if (this.sink.path === path) this.#use(undefined);
    if (this.#dtlsPath === path) this.#dtlsPath = undefined;
  }

  #dropStalest(): void {
    let stalest: DirectPath | undefined;
    for (const path of this.#direct.keys()) {
      if (path !== this.#ice.path && (stalest === undefined || path.checkedAtMs < stalest.checkedAtMs)) stalest = path;
    }
    if (stalest !== undefined) this.dropDirect(stalest);
  }

  #guard(call: () => void): void {
    try {
      call();
    } catch {
      this.#host.drops.handler_error++;
    }
  }
}

type Seal = (session: SrtpSendSession, buffer: Buffer, start: number, end: number) => number;
