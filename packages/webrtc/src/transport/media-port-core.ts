import { addressBytes } from '@bloom/net';
import type { DtlsCertificate } from '../dtls/certificate.js';
import { createDropCounters, type DropReason } from '../drops.js';
import { WebrtcError } from '../errors.js';
import type { UfragRegistry } from '../ice/ice-lite-agent.js';
import type { RelayClient } from '../relay/allocation.js';
import type { ClientFlow } from '../relay/client-flow.js';
import type { Nonces } from '../relay/nonces.js';
import { RelayFront } from '../relay/relay-front.js';
import type { RelayStream, RelayStreamOptions } from '../relay/relay-stream.js';
import { SourceLimiter } from '../relay/source-limiter.js';
import { streamFrame } from '../relay/stream-frames.js';
import type { TransportAddress } from '../stun/address.js';
import { Attribute, Method } from '../stun/constants.js';
import { StunMessage } from '../stun/message.js';
import type { MediaPortStats, PeerTransport, PeerTransportOptions } from './api.js';
import { type Source, SourceTable } from './source-table.js';
import { Transport, type TransportHost } from './transport.js';
import { TurnQueue } from './turn-queue.js';
import { UdpFlow, type UdpSockets } from './udp-flow.js';

/** Challenges that one network may draw at once: enough for an office behind one address that joins together. */
const CHALLENGE_BURST = 1_000;
const CHALLENGES_PER_SECOND = 200;
const SWEEP_MS = 1_000;
/** A longer gap between two ticks is a pause of the process, or of its thread. */
const PAUSE_MS = 2_000;
/** Queue of handshake datagrams; clients retransmit dropped ones. One step takes up to a millisecond. */
const HANDSHAKES = { maxWaiting: 512, perTurn: 1 };
/** Queue of data channel steps. A step takes about 50 microseconds. */
const DATA = { maxWaiting: 16_384, perTurn: 8 };
/** Time limit for a relayed connection to allocate: it has named a user but not proven the password. */
const UNALLOCATED_MS = 10_000;

interface MediaPortCoreOptions {
  /** Address and port under which clients know us. */
  advertised: TransportAddress;
  certificate: DtlsCertificate;
  nonces: Nonces;
  clock: () => number;
  sockets: UdpSockets;
  onSlotKept: (slot: number) => void;
  /** Runs a function in the next turn of the event loop; handshakes and data channels work in such steps. */
  nextTurn?: (run: () => void) => void;
}

/**
 * A media port without its socket: datagrams and relay frames in, datagrams out. Demultiplexes packets by their first
 * byte (RFC 7983 section 7) and their source.
 */
export class MediaPortCore {
  readonly #options: MediaPortCoreOptions;
  readonly #transports = new Set<Transport>();
  readonly #byUfrag = new Map<string, Transport>();
  readonly #sources = new SourceTable();
  readonly #relay: RelayFront;
  readonly #drops = createDropCounters();
  readonly #streams = new Map<RelayClient, { options: RelayStreamOptions; sinceMs: number }>();
  readonly #host: Omit<TransportHost, 'ufrags'>;
  readonly #totals = { bytesReceived: 0, bytesSent: 0, packetsReceived: 0, packetsSent: 0 };
  readonly #connected = new Set<UdpFlow>();
  #sweptMs = 0;
  #tickedMs: number | undefined;

  constructor(options: MediaPortCoreOptions) {
    this.#options = options;
    const nextTurn = options.nextTurn && ((run: () => void) => options.nextTurn?.(() => this.#guard(run)));
    this.#relay = new RelayFront({
      relayed: options.advertised,
      nonces: options.nonces,
      limiter: new SourceLimiter({ burst: CHALLENGE_BURST, perSecond: CHALLENGES_PER_SECOND }),
      ownerOf: (ufrag) => this.#byUfrag.get(ufrag),
      onClientChanged: (client) => this.#clientChanged(client),
    });
    this.#host = {
      relay: this.#relay,
      certificate: options.certificate,
      handshakes: new TurnQueue({ ...HANDSHAKES, nextTurn }),
      data: new TurnQueue({ ...DATA, nextTurn }),
      drops: this.#drops,
      relayed: options.advertised,
      clock: options.clock,
      sourceChanged: (source) => this.#sourceChanged(source),
      slotKept: options.onSlotKept,
      closed: (transport) => this.#transports.delete(transport),
    };
  }

  hasRelayUser(username: string): boolean {
    return this.#relay.hasUser(username);
  }

  openTransport(options: PeerTransportOptions): PeerTransport {
    const { username, password } = options.relay;
    if (this.#relay.hasUser(username) && options.sharesRelay !== true) {
      throw new WebrtcError('DUPLICATE_USER', `the relay already has a user ${username}`);
    }
    // Control planes choose fragments at random; on a collision the first transport keeps the fragment.
    const ufrags: UfragRegistry = {
      added: (ufrag) => {
        if (!this.#byUfrag.has(ufrag)) this.#byUfrag.set(ufrag, transport);
      },
      removed: (ufrag) => {
        if (this.#byUfrag.get(ufrag) === transport) this.#byUfrag.delete(ufrag);
      },
    };
    const transport: Transport = new Transport({ ...this.#host, ufrags }, options);
    this.#relay.addUser(username, password, transport);
    this.#transports.add(transport);
    return transport;
  }

  /** Takes one datagram from the socket of our own address `local` and may modify its bytes. */
  receive(datagram: Buffer, address: string, port: number, local = 0): void {
    const nowMs = this.#options.clock();
    this.#totals.packetsReceived++;
    this.#totals.bytesReceived += datagram.length;
    const first = datagram[0] ?? 0xff;
    const source = this.#sources.get(address, port, local);
    if (first >= 128 && first <= 191) this.#direct(source, datagram, nowMs);
    else if (first >= 64 && first <= 79) this.#channelData(source, datagram, nowMs);
    else if (first <= 3) this.#stun(source ?? this.#newSource(address, port, local), datagram, nowMs);
    else if (first >= 20 && first <= 63) this.#direct(source, datagram, nowMs);
    else this.#drop('malformed');
  }

  attachStream(options: RelayStreamOptions): RelayStream {
    const { address, port, secure } = options;
    const flow: ClientFlow = {
      protocol: 'tcp',
      secure,
      address,
      port,
      source: toTransportAddress(address, port),
      send: (frame) => {
        this.#totals.packetsSent++;
        this.#totals.bytesSent += frame.length;
        if (!options.send(streamFrame(frame))) this.#drop('backlog');
        return true;
      },
    };
    const client: RelayClient = { flow, allocation: undefined };
    this.#streams.set(client, { options, sinceMs: this.#options.clock() });
    return {
      receive: (frame) => {
        try {
          this.#streamFrame(client, frame);
        } catch {
          this.countFault();
        }
      },
      closed: () => {
        this.#streams.delete(client);
        this.#relay.clientGone(client);
      },
    };
  }

  /** Runs all timers. Call a few times a second. */
  tick(): void {
    const nowMs = this.#options.clock();
    const gapMs = nowMs - (this.#tickedMs ?? nowMs);
    this.#tickedMs = nowMs;
    if (gapMs > PAUSE_MS) this.#paused(gapMs, nowMs);
    for (const transport of this.#transports) transport.sweepHandshake(nowMs);
    if (nowMs - this.#sweptMs < SWEEP_MS) return;
    this.#sweptMs = nowMs;
    this.#relay.sweep(nowMs);
    for (const transport of this.#transports) transport.sweep(nowMs);
    for (const flow of this.#connected) flow.sweep();
    for (const [client, { sinceMs }] of this.#streams) {
      if (client.allocation === undefined && nowMs - sinceMs >= UNALLOCATED_MS) this.#endStream(client);
    }
  }

  /** Timers run before sockets are read: what clients sent during a pause does not count as missing. */
  #paused(ms: number, nowMs: number): void {
    this.#relay.paused(ms);
    for (const transport of this.#transports) transport.paused(ms, nowMs);
    for (const stream of this.#streams.values()) stream.sinceMs = Math.min(nowMs, stream.sinceMs + ms);
  }

  stats(): MediaPortStats {
    return {
      transports: this.#transports.size,
      allocations: this.#relay.allocationCount,
      connectedClients: this.#connected.size,
      ...this.#totals,
      dropped: { ...this.#drops },
    };
  }

  /** Counts an exception of ours while handling one datagram or frame. */
  countFault(): void {
    this.#drop('handler_error');
  }

  close(): void {
    for (const transport of this.#transports) transport.close();
    for (const flow of this.#connected) flow.disconnect();
    for (const client of this.#streams.keys()) this.#endStream(client);
  }

  #stun(source: Source, datagram: Buffer, nowMs: number): void {
    const message = StunMessage.parse(datagram);
    if (message === undefined) return this.#drop('malformed');
    if (message.method !== Method.binding) {
      const reason = this.#relay.handle(source, message, nowMs);
      if (reason !== undefined) this.#drop(reason);
      return;
    }
    const username = message.text(Attribute.username) ?? '';
    const transport = this.#byUfrag.get(username.slice(0, Math.max(0, username.indexOf(':'))));
    if (transport === undefined) return this.#drop('unauthenticated');
    transport.onDirectCheck(message, source, nowMs);
  }

  #direct(source: Source | undefined, datagram: Buffer, nowMs: number): void {
    const direct = source?.direct;
    if (direct === undefined) return this.#drop('unknown_source');
    direct.owner.receive(direct.path, datagram, nowMs);
  }

  #channelData(client: RelayClient | undefined, frame: Buffer, nowMs: number): void {
    if (client === undefined) return this.#drop('relay_unbound');
    const reason = this.#relay.handleChannelData(client, frame, nowMs);
    if (reason !== undefined) this.#drop(reason);
  }

  #streamFrame(client: RelayClient, frame: Buffer): void {
    const nowMs = this.#options.clock();
    this.#totals.packetsReceived++;
    this.#totals.bytesReceived += frame.length;
    const first = frame[0] ?? 0xff;
    if (first >= 64 && first <= 79) return this.#channelData(client, frame, nowMs);
    const message = first <= 3 ? StunMessage.parse(frame) : undefined;
    if (message === undefined || message.method === Method.binding) return this.#drop('malformed');
    const reason = this.#relay.handle(client, message, nowMs);
    if (reason !== undefined) this.#drop(reason);
  }

  #newSource(address: string, port: number, local: number): Source {
    const flow = new UdpFlow({
      address,
      port,
      local,
      source: toTransportAddress(address, port),
      sockets: this.#options.sockets,
      totals: this.#totals,
      connected: this.#connected,
    });
    return { flow, allocation: undefined, direct: undefined };
  }

  /** Contains an exception in one handshake or data channel step, which must not end the worker and all its rooms. */
  #guard(run: () => void): void {
    try {
      run();
    } catch {
      this.countFault();
    }
  }

  #sourceChanged(source: Source): void {
    this.#sources.update(source);
    if (source.allocation === undefined && source.direct === undefined) (source.flow as UdpFlow).disconnect();
  }

  #clientChanged(client: RelayClient): void {
    if (client.flow instanceof UdpFlow) return this.#sourceChanged(client as Source);
    // A connection carries one allocation and is closed with it.
    if (client.allocation === undefined) this.#endStream(client);
    else this.#streams.get(client)?.options.allocated();
  }

  #endStream(client: RelayClient): void {
    const stream = this.#streams.get(client);
    this.#streams.delete(client);
    stream?.options.close();
  }

  #drop(reason: DropReason): void {
    this.#drops[reason]++;
  }
}

function toTransportAddress(address: string, port: number): TransportAddress {
  const bytes = addressBytes(address);
  if (bytes === undefined) throw new WebrtcError('BAD_ADDRESS', `${address} is not an IP address`);
  return { bytes, port };
}
