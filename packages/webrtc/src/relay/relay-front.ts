import { randomBytes } from 'node:crypto';
import type { DropReason } from '../drops.js';
import { sameAddress, type TransportAddress } from '../stun/address.js';
import { Attribute, MessageClass, Method, StunError, type StunErrorCode } from '../stun/constants.js';
import { StunMessage } from '../stun/message.js';
import { StunWriter } from '../stun/writer.js';
import {
  Allocation,
  CHANNEL_LIFETIME_MS,
  DEFAULT_LIFETIME_S,
  longTermKey,
  MAX_LIFETIME_S,
  PERMISSION_LIFETIME_MS,
  type RelayClient,
  type RelayOwner,
  type RelayUserEntry,
} from './allocation.js';
import { CHANNEL_DATA_HEADER, channelPayload, isChannelNumber, writeChannelHeader } from './channel-data.js';
import type { Nonces } from './nonces.js';
import { challengeReply, finish, RELAY_REALM, type RelayRequest, refuse, success } from './replies.js';
import type { SourceLimiter } from './source-limiter.js';

const REQUESTED_TRANSPORT_UDP = 17;

export interface RelayLimits {
  allocationsPerUser: number;
  allocations: number;
}

const DEFAULT_RELAY_LIMITS: RelayLimits = { allocationsPerUser: 32, allocations: 20_000 };

interface RelayFrontOptions {
  /** Our advertised address: the only address we relay to, and the address of every allocation. */
  relayed: TransportAddress;
  nonces: Nonces;
  limiter: SourceLimiter;
  limits?: Partial<RelayLimits>;
  /** Returns the transport with this fragment of a user name in checks. */
  ownerOf?(ufrag: string): RelayOwner | undefined;
  /** Called when a client gains or loses its allocation: the port must remember the client, or may forget it. */
  onClientChanged(client: RelayClient): void;
}

/**
 * The relay (RFC 8656) without sockets: client messages in, replies out through the client's flow. Data is passed in
 * memory to the owner of the allocation; this server is the only peer.
 */
export class RelayFront {
  readonly #options: RelayFrontOptions;
  readonly #users = new Map<string, RelayUserEntry>();
  readonly #clients = new Map<Allocation, RelayClient>();
  readonly #limits: RelayLimits;

  constructor(options: RelayFrontOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_RELAY_LIMITS, ...options.limits };
  }

  get allocationCount(): number {
    return this.#clients.size;
  }

  hasUser(username: string): boolean {
    return this.#users.has(username);
  }

  /** Adds a user, or a further owner of the allocations of one. */
  addUser(username: string, password: string, owner: RelayOwner): void {
    const user = this.#users.get(username);
    if (user !== undefined) return void user.owners.push(owner);
    const key = longTermKey(username, RELAY_REALM, password);
    this.#users.set(username, { username, key, owners: [owner], allocations: new Set() });
  }

  /** Frees the allocations of the owner; with the last one, the user and all its allocations. */
  removeUser(username: string, owner: RelayOwner): void {
    const user = this.#users.get(username);
    if (user === undefined || !user.owners.includes(owner)) return;
    const isLast = user.owners.length === 1;
    if (isLast) this.#users.delete(username);
    for (const allocation of user.allocations) {
      if (isLast || allocation.owner === owner) this.#free(allocation);
    }
    user.owners.splice(user.owners.indexOf(owner), 1);
  }

  /** Handles any STUN message other than Binding. Returns why it was dropped, if it was. */
  handle(client: RelayClient, message: StunMessage, nowMs: number): DropReason | undefined {
    if (message.messageClass === MessageClass.indication) return this.#handleIndication(client, message, nowMs);
    if (message.messageClass !== MessageClass.request || !REQUESTS.has(message.method)) return 'malformed';
    if (!message.fingerprintHolds) return 'malformed';
    const user = this.#authenticate(message);
    if (user === undefined) return this.#refuseStranger(client, message, nowMs);
    const nonce = message.text(Attribute.nonce) ?? '';
    if (!this.#options.nonces.holds(nonce, client.flow, nowMs)) {
      this.#challenge({ client, message, nowMs }, StunError.staleNonce);
      return undefined;
    }
    this.#dispatch({ client, message, user, nowMs });
    return undefined;
  }

  /** Passes the data of a ChannelData message to the allocation's owner. Returns why it was dropped, if it was. */
  handleChannelData(client: RelayClient, frame: Buffer, nowMs: number): DropReason | undefined {
    const { allocation } = client;
    if (allocation === undefined) return 'relay_unbound';
    const channel = ((frame[0] ?? 0) << 8) | (frame[1] ?? 0);
    if (channel !== allocation.channel) return 'relay_unbound';
    const payload = channelPayload(frame);
    if (payload === undefined) return 'malformed';
    allocation.activeAtMs = nowMs;
    this.#deliver(allocation, payload, nowMs);
    return undefined;
  }

  /**
   * Sends a packet from this server to the allocation's client. `datagram` begins with `allocation.headroom` free
   * bytes. A packet is sent without a copy through a channel, and as a Data indication otherwise.
   */
  sendTo(allocation: Allocation, datagram: Buffer): boolean {
    const { channel } = allocation;
    if (channel !== 0) {
      writeChannelHeader(datagram, channel, datagram.length - CHANNEL_DATA_HEADER);
      return allocation.flow.send(datagram);
    }
    const indication = new StunWriter(Method.data, MessageClass.indication, randomBytes(12), datagram.length + 40)
      .xorAddress(Attribute.xorPeerAddress, this.#options.relayed)
      .bytes(Attribute.data, datagram)
      .finish();
    allocation.flow.send(indication);
    return true;
  }

  /** Frees the allocation of a closed connection. */
  clientGone(client: RelayClient): void {
    if (client.allocation !== undefined) this.#free(client.allocation);
  }

  /** Extends all lifetimes by a pause of this process, whose refreshes are still unread. */
  paused(ms: number): void {
    for (const allocation of this.#clients.keys()) {
      allocation.expiresAtMs += ms;
      if (allocation.permissionUntilMs > 0) allocation.permissionUntilMs += ms;
      if (allocation.channel > 0) allocation.channelUntilMs += ms;
    }
  }

  /** Frees expired allocations. Call about once a second. */
  sweep(nowMs: number): void {
    for (const allocation of this.#clients.keys()) {
      if (nowMs >= allocation.expiresAtMs) this.#free(allocation);
      else if (nowMs >= allocation.channelUntilMs) allocation.channel = 0;
    }
  }

  #authenticate(message: StunMessage): RelayUserEntry | undefined {
    const username = message.text(Attribute.username);
    const user = username === undefined ? undefined : this.#users.get(username);
    if (user !== undefined && message.verifyIntegrity(user.key)) return user;
    return undefined;
  }

  /** Challenges a request without valid credentials, but only an Allocate or one on a 5-tuple with an allocation. */
  #refuseStranger(client: RelayClient, message: StunMessage, nowMs: number): DropReason | undefined {
    if (message.method !== Method.allocate && client.allocation === undefined) return 'unauthenticated';
    if (!this.#options.limiter.take(client.flow.address, nowMs)) return 'rate_limited';
    this.#challenge({ client, message, nowMs }, StunError.unauthorized);
    return message.has(Attribute.messageIntegrity) ? 'unauthenticated' : undefined;
  }

  #challenge({ client, message, nowMs }: Omit<RelayRequest, 'user'>, error: StunErrorCode): void {
    const { flow } = client;
    flow.send(challengeReply(message, error, this.#options.nonces.mint(flow, nowMs)));
  }

  #dispatch(request: RelayRequest): void {
    const { client, message, user } = request;
    const allocation = client.allocation;
    if (allocation !== undefined && allocation.user !== user) return refuse(request, StunError.wrongCredentials);
    if (message.unknownRequired.length > 0) return refuse(request, StunError.unknownAttribute);
    if (message.method === Method.allocate) return this.#allocate(request);
    if (allocation === undefined) return refuse(request, StunError.allocationMismatch);
    if (message.method === Method.refresh) return this.#refresh(request, allocation);
    if (message.method === Method.createPermission) return this.#createPermission(request, allocation);
    return this.#channelBind(request, allocation);
  }

  /** Handles an Allocate request (RFC 8656 section 7.2). */
  #allocate(request: RelayRequest): void {
    const { client, message, user, nowMs } = request;
    if (client.allocation !== undefined) {
      const again = client.allocation.transactionId.equals(message.transactionId);
      return again ? this.#confirm(request, client.allocation) : refuse(request, StunError.allocationMismatch);
    }
    const transport = message.uint8(Attribute.requestedTransport);
    if (transport === undefined) return refuse(request, StunError.badRequest);
    if (transport !== REQUESTED_TRANSPORT_UDP) return refuse(request, StunError.unsupportedTransport);
    if (message.has(Attribute.reservationToken) || ((message.uint8(Attribute.evenPort) ?? 0) & 0x80) !== 0) {
      return refuse(request, StunError.insufficientCapacity);
    }
    if (!this.#familyFits(message)) return refuse(request, StunError.familyNotSupported);
    if (!this.#makeRoom(user)) return refuse(request, StunError.insufficientCapacity);

    const lifetimeS = grantedLifetime(message.uint32(Attribute.lifetime));
    const transactionId = Buffer.from(message.transactionId);
    const allocation = new Allocation({ user, flow: client.flow, transactionId, nowMs, lifetimeS });
    user.allocations.add(allocation);
    client.allocation = allocation;
    this.#clients.set(allocation, client);
    this.#options.onClientChanged(client);
    this.#confirm(request, allocation);
  }

  #confirm(request: RelayRequest, allocation: Allocation): void {
    const remainingS = Math.max(1, Math.round((allocation.expiresAtMs - request.nowMs) / 1000));
    const reply = success(request)
      .xorAddress(Attribute.xorRelayedAddress, this.#options.relayed)
      .xorAddress(Attribute.xorMappedAddress, request.client.flow.source)
      .uint32(Attribute.lifetime, remainingS);
    finish(request, reply);
  }

  /** Handles a Refresh request (RFC 8656 section 8.2). */
  #refresh(request: RelayRequest, allocation: Allocation): void {
    const { message, nowMs } = request;
    if (!this.#familyFits(message)) return refuse(request, StunError.peerFamilyMismatch);
    const wanted = message.uint32(Attribute.lifetime);
    const lifetimeS = wanted === 0 ? 0 : grantedLifetime(wanted);
    allocation.expiresAtMs = nowMs + lifetimeS * 1000;
    finish(request, success(request).uint32(Attribute.lifetime, lifetimeS));
    if (lifetimeS === 0) this.#free(allocation);
  }

  /** Handles a CreatePermission request (RFC 8656 section 10.2). */
  #createPermission(request: RelayRequest, allocation: Allocation): void {
    const peers = request.message.peerAddresses();
    if (peers === undefined || peers.length === 0) return refuse(request, StunError.badRequest);
    if (!peers.every((peer) => this.#isOurselves(peer))) return refuse(request, StunError.forbidden);
    allocation.permissionUntilMs = request.nowMs + PERMISSION_LIFETIME_MS;
    finish(request, success(request));
  }

  /** Handles a ChannelBind request (RFC 8656 section 12.2). */
  #channelBind(request: RelayRequest, allocation: Allocation): void {
    const { message, nowMs } = request;
    const channel = message.uint16(Attribute.channelNumber);
    const peer = message.xorAddress(Attribute.xorPeerAddress);
    if (channel === undefined || !isChannelNumber(channel) || peer === undefined) {
      return refuse(request, StunError.badRequest);
    }
    if (!this.#isOurselves(peer)) return refuse(request, StunError.forbidden);
    if (allocation.channel !== 0 && allocation.channel !== channel) return refuse(request, StunError.badRequest);
    allocation.channel = channel;
    allocation.channelUntilMs = nowMs + CHANNEL_LIFETIME_MS;
    allocation.permissionUntilMs = nowMs + PERMISSION_LIFETIME_MS;
    finish(request, success(request));
  }

  /** Handles a Send indication, which is never answered (RFC 8656 section 11.2). */
  #handleIndication(client: RelayClient, message: StunMessage, nowMs: number): DropReason | undefined {
    if (message.method !== Method.send) return 'malformed';
    const { allocation } = client;
    const data = message.bytes(Attribute.data);
    const peer = message.xorAddress(Attribute.xorPeerAddress);
    if (data === undefined || peer === undefined) return 'malformed';
    if (allocation === undefined || !allocation.isPermitted(nowMs) || !this.#isOurselves(peer)) return 'relay_unbound';
    allocation.activeAtMs = nowMs;
    this.#deliver(allocation, data, nowMs);
    return undefined;
  }

  #deliver(allocation: Allocation, data: Buffer, nowMs: number): void {
    const { owners } = allocation.user;
    if (owners.length > 1 && (data[0] ?? 0xff) <= 3) {
      const username = StunMessage.parse(data)?.text(Attribute.username) ?? '';
      const named = this.#options.ownerOf?.(username.slice(0, Math.max(0, username.indexOf(':'))));
      if (named !== undefined && owners.includes(named)) allocation.owner = named;
    }
    // Until a check of the second connection tells otherwise, everything belongs to the first one.
    (allocation.owner ?? owners[0])?.onRelayed(allocation, data, nowMs);
  }

  #isOurselves(peer: TransportAddress): boolean {
    return sameAddress(peer, this.#options.relayed);
  }

  #familyFits(message: StunMessage): boolean {
    const family = message.uint8(Attribute.requestedAddressFamily);
    return family === undefined || family === (this.#options.relayed.bytes.length === 4 ? 0x01 : 0x02);
  }

  /**
   * Returns true if another allocation fits. A client allocates again with each renegotiation while its old allocations
   * linger, so a user at the limit loses the longest idle one instead of being refused.
   */
  #makeRoom(user: RelayUserEntry): boolean {
    if (user.allocations.size >= this.#limits.allocationsPerUser) {
      let idlest: Allocation | undefined;
      for (const allocation of user.allocations) {
        if (user.owners.some((owner) => owner.isInUse(allocation))) continue;
        if (idlest === undefined || allocation.activeAtMs < idlest.activeAtMs) idlest = allocation;
      }
      if (idlest === undefined) return false;
      this.#free(idlest);
    }
    return this.#clients.size < this.#limits.allocations;
  }

  #free(allocation: Allocation): void {
    const client = this.#clients.get(allocation);
    if (client === undefined) return;
    this.#clients.delete(allocation);
    allocation.user.allocations.delete(allocation);
    client.allocation = undefined;
    for (const owner of allocation.user.owners) owner.onAllocationGone(allocation);
    this.#options.onClientChanged(client);
  }
}

const REQUESTS = new Set<number>([Method.allocate, Method.refresh, Method.createPermission, Method.channelBind]);

function grantedLifetime(wantedS: number | undefined): number {
  if (wantedS === undefined) return DEFAULT_LIFETIME_S;
  return Math.min(MAX_LIFETIME_S, Math.max(DEFAULT_LIFETIME_S, wantedS));
}
