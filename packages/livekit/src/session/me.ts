import {
  Codec,
  ICEServer,
  JoinResponse,
  type ParticipantInfo,
  ParticipantInfo_State,
  ParticipantPermission,
  ReconnectResponse,
  Room,
  ServerInfo,
  ServerInfo_Edition,
  type TrackInfo,
  TrackSource,
} from '@livekit/protocol';
import type { PeerPermissions, PeerSessionOptions } from '@bloom/rooms';
import { commonCodecs, payloadFormat } from '@bloom/rtp';
import type { MediaEndpoint, RelayCredentials, TrackKind } from '@bloom/sfu';
import { type Claims, type Grants, grantsAtLeast, type SourceName } from '../grants.js';
import { uint32Of } from '../json-text.js';
import { sidOf } from '../names.js';
import type { ParticipantRecord } from '../record.js';
import { describeParticipant } from './participant-info.js';
import type { Counts } from './participants.js';
import type { JoinedRoom, JoinMessage } from './session-message.js';

/**
 * The release of LiveKit's server that clients adapt to: from 1.8.0 on they use RPC, and above 1.13.6 they would send
 * VP9 with simulcast. Bloom's own release is in `debug_info`.
 */
const COMPATIBLE_VERSION = '1.13.5';
const PROTOCOL = 17;
/** Protocol of the first clients that can wait for the server's offer. */
const SUBSCRIBER_PRIMARY_SINCE = 3;
const PING_INTERVAL_S = 5;
const PING_TIMEOUT_S = 15;

const SOURCE_OF: Readonly<Record<SourceName, TrackSource>> = {
  camera: TrackSource.CAMERA,
  microphone: TrackSource.MICROPHONE,
  screen_share: TrackSource.SCREEN_SHARE,
  screen_share_audio: TrackSource.SCREEN_SHARE_AUDIO,
};

/** What the client learns about itself and the server. */
export class Me {
  readonly protocol: number;
  readonly autoSubscribe: boolean;
  readonly #hasTwoConnections: boolean;
  readonly #options: PeerSessionOptions;
  #room: JoinedRoom;
  readonly #server: ServerInfo;
  readonly #issuer: string;
  #grants: Grants;
  #record: ParticipantRecord;
  #state = ParticipantInfo_State.JOINING;
  #version = 0;
  #changed = false;

  constructor(options: PeerSessionOptions, join: JoinMessage) {
    this.#options = options;
    this.#room = join.room;
    this.#record = join.record;
    this.#issuer = join.issuer;
    this.#grants = join.grants;
    this.protocol = join.protocol;
    this.autoSubscribe = join.autoSubscribe;
    this.#hasTwoConnections = join.twoConnections === true;
    this.#server = new ServerInfo({
      edition: ServerInfo_Edition.Standard,
      version: COMPATIBLE_VERSION,
      protocol: PROTOCOL,
      agentProtocol: 1,
      nodeId: join.nodeId,
      debugInfo: `Bloom ${join.release}`,
    });
  }

  /** Returns true if the claims are of this client, and permit it at least what it may do now. */
  mayContinue(claims: Claims): boolean {
    const { identity, kind } = this.#record;
    if (claims.sub !== identity || claims.iss !== this.#issuer) return false;
    const { canPublishSources, ...flags } = this.#grants;
    const video = { ...flags, canPublishSources: [...canPublishSources] };

    return grantsAtLeast(claims, { iss: claims.iss, exp: claims.exp, kind, video });
  }

  get sid(): string {
    return sidOf('PA', this.#options.peerId);
  }

  /** True if the client waits for the connection on which it receives, rather than opening the other one first. */
  get isSubscriberPrimary(): boolean {
    return this.#hasTwoConnections && this.#grants.canSubscribe && this.protocol >= SUBSCRIBER_PRIMARY_SINCE;
  }

  get grants(): Grants {
    return this.#grants;
  }

  get record(): ParticipantRecord {
    return this.#record;
  }

  /** True while the client does not know its own state. */
  get isChanged(): boolean {
    return this.#changed;
  }

  touch(): void {
    this.#changed = true;
  }

  told(): void {
    this.#changed = false;
  }

  /** States are reached in order, and never left for an earlier one. */
  reach(state: ParticipantInfo_State): void {
    if (state <= this.#state) return;
    this.#state = state;
    this.#changed = true;
  }

  setRecord(record: ParticipantRecord): void {
    this.#record = record;
    this.#grants = { ...this.#grants, canPublishSources: record.sources ?? this.#grants.canPublishSources };
    this.#changed = true;
  }

  /** Applies the room's permissions. Returns whether that changes the grants. */
  permit(kinds: readonly TrackKind[], { publish, subscribe, metadata }: PeerPermissions): boolean {
    const before = this.#grants;
    this.#grants = {
      ...before,
      canPublish: kinds.length > 0,
      canPublishData: typeof publish === 'boolean' ? publish : publish.includes('data'),
      canSubscribe: subscribe,
      canUpdateOwnMetadata: metadata,
    };
    const isSame = (Object.keys(before) as (keyof Grants)[]).every((name) => before[name] === this.#grants[name]);
    if (!isSame) this.#changed = true;

    return !isSame;
  }

  describe(tracks: TrackInfo[]): ParticipantInfo {
    this.#version += 1;
    const info = describeParticipant(this.#record, {
      sid: this.sid,
      state: this.#state,
      version: this.#version,
      tracks,
    });
    const { canPublish, canSubscribe, canPublishData, canPublishSources, canUpdateOwnMetadata, hidden } = this.#grants;
    info.permission = new ParticipantPermission({
      canPublish,
      canSubscribe,
      canPublishData,
      canPublishSources: canPublishSources.map((source) => SOURCE_OF[source]),
      canUpdateMetadata: canUpdateOwnMetadata,
      hidden,
      recorder: this.#record.kind === 'egress',
      agent: this.#record.kind === 'agent',
    });

    return info;
  }

  /** Returns the room with other metadata. */
  updateRoom(metadata: string, others: Counts): Room {
    this.#room = { ...this.#room, metadata };

    return this.#describeRoom(others);
  }

  joinResponse(counts: Counts): JoinResponse {
    return new JoinResponse({
      room: this.#describeRoom(counts),
      participant: this.describe([]),
      serverVersion: COMPATIBLE_VERSION,
      serverInfo: this.#server,
      iceServers: iceServers(this.#options.endpoint, this.#options.relay),
      subscriberPrimary: this.isSubscriberPrimary,
      pingInterval: PING_INTERVAL_S,
      pingTimeout: PING_TIMEOUT_S,
      enabledPublishCodecs: codecs(this.#options.videoCodec),
      fastPublish: true,
      sifTrailer: this.#options.randomBytes(16),
    });
  }

  reconnectResponse(lastMessageSeq: number): ReconnectResponse {
    const { endpoint, relay } = this.#options;

    return new ReconnectResponse({
      iceServers: iceServers(endpoint, relay),
      serverInfo: this.#server,
      lastMessageSeq,
    });
  }

  #describeRoom({ participants, publishers }: Counts): Room {
    const { sid, name, createdAt, metadata, maxParticipants, departureTimeout } = this.#room;

    return new Room({
      sid,
      name,
      creationTime: BigInt(Math.floor(createdAt / 1_000)),
      creationTimeMs: BigInt(createdAt),
      metadata,
      maxParticipants: uint32Of(maxParticipants),
      departureTimeout: uint32Of(departureTimeout),
      enabledCodecs: codecs(this.#options.videoCodec),
      numParticipants: participants + (this.#grants.hidden ? 0 : 1),
      numPublishers: publishers,
    });
  }
}

/** Codecs in which the client may publish, video first: clients replace an unsupported one by the first. */
function codecs(videoCodec: PeerSessionOptions['videoCodec']): Codec[] {
  const names = ['video', 'audio'].flatMap((kind) => commonCodecs(kind, videoCodec));

  return names.map((name) => new Codec({ mime: payloadFormat(name).mimeType }));
}

/** The relay of the room's node, in the forms of RFC 7065. */
function iceServers(endpoint: MediaEndpoint, { username, password: credential }: RelayCredentials): ICEServer[] {
  const { address, secondAddress, moreAddresses = [], port, tcpPort, tls } = endpoint;
  const hosts = [address, ...(secondAddress === undefined ? [] : [secondAddress])];
  const urls = [
    ...[...hosts, ...moreAddresses].map((host) => `turn:${bracketed(host)}:${port}?transport=udp`),
    ...(tcpPort === undefined ? [] : hosts.map((host) => `turn:${bracketed(host)}:${tcpPort}?transport=tcp`)),
    ...(tls === undefined ? [] : [`turns:${bracketed(tls.host)}:${tls.port}?transport=tcp`]),
  ];

  return [new ICEServer({ urls, username, credential })];
}

function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}
