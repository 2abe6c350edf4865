import { randomBytes, randomUUID } from 'node:crypto';
import {
  type AddedPeer,
  type AttachRefusal,
  type ComponentType,
  type ComponentView,
  type Guest,
  type PeerChanges,
  peerRelay,
  type PeerRelay,
  type PermissionChanges,
  type PeerView,
  type RoomChanges,
  type RoomConfig,
  RoomError,
  type RoomErrorCode,
  type RoomMessage,
  type PeerSession,
  type RoomService,
  type SessionAddress,
  type SessionInput,
  type RoomView,
  type TrackAddress,
  type TrackView,
} from '@bloom/rooms';
import { createHttpSession } from '@bloom/whip';

function peerless(room: RoomView): RoomView {
  return structuredClone(room);
}

const ENDPOINT = { address: '192.0.2.1', port: 50_000, tls: { host: 'media.example.com', port: 443 } };
const RELAY = { username: '1:ann', password: 'secret' };

/**
 * Rooms without media, cluster and actors: just what the HTTP API can see, for its tests. `fail` makes the next call
 * fail with an error that these rooms would not cause themselves.
 */
export class MemoryRooms implements RoomService {
  readonly address = 'media.example:4000/path';
  readonly subscriptions: [string, readonly string[]][] = [];
  readonly calls: string[] = [];
  readonly messages: (RoomMessage & { to?: readonly string[] })[] = [];
  readonly removals: (string | undefined)[] = [];
  /** Ids of the requests that called. */
  readonly requests: string[] = [];
  readonly #rooms = new Map<string, RoomView>();
  readonly #createdAt = new Map<string, number>();
  #creations = 0;
  readonly #uses = new Map<string, number>();
  readonly #sessions = new Map<string, (request: string) => string>();
  #failure: Error | undefined;

  fail(error: RoomErrorCode | Error, message = 'it failed'): void {
    this.#failure = typeof error === 'string' ? new RoomError(error, message) : error;
  }

  forRequest(requestId: string): MemoryRooms {
    this.requests.push(requestId);

    return this;
  }

  async createRoom(config: RoomConfig): Promise<{ room: RoomView; address: string }> {
    this.#check();
    const id = config.roomId ?? randomUUID();
    if (this.#rooms.has(id)) {
      throw new RoomError('ROOM_EXISTS', `Cannot add room with id "${id}" - room already exists`);
    }
    const room: RoomView = { id, config: { ...config, roomId: id }, components: [], peers: [] };
    this.#rooms.set(id, room);
    this.#createdAt.set(id, (this.#creations += 1));

    return { room: peerless(room), address: this.address };
  }

  async listRooms(scope: 'local' | 'cluster'): Promise<{ rooms: RoomView[]; unreachable: string[] }> {
    this.#check();

    return { rooms: [...this.#rooms.values()], unreachable: scope === 'cluster' ? ['bloom@gone'] : [] };
  }

  async getRoom(roomId: string): Promise<RoomView> {
    return this.#room(roomId);
  }

  async createdAt(roomId: string): Promise<number> {
    return this.#createdAt.get(this.#room(roomId).id) ?? 0;
  }

  async deleteRoom(roomId: string): Promise<void> {
    this.#room(roomId);
    this.#rooms.delete(roomId);
  }

  async addPeer(roomId: string, options: unknown): Promise<AddedPeer> {
    const room = this.#room(roomId);
    if (room.peers.length >= (room.config.maxPeers ?? Number.POSITIVE_INFINITY)) {
      throw new RoomError('PEER_LIMIT', `Reached peer limit in room ${roomId}`);
    }
    this.#checkOptions(options ?? {}, { enableSimulcast: 'boolean' });
    const peer: PeerView = { id: randomUUID(), type: 'webrtc', status: 'disconnected', tracks: [], metadata: null };
    room.peers.push(peer);

    const websocketUrl = `${this.address}/socket/peer/websocket`;

    return { peer, token: `token of ${roomId} ${peer.id}`, websocketUrl };
  }

  async addGuest(roomId: string, { invitation, options }: Guest): Promise<AddedPeer> {
    if (this.#createdAt.get(this.#room(roomId).id) !== invitation.createdAt) {
      throw new RoomError('ROOM_NOT_FOUND', `Room ${roomId} does not exist`);
    }
    const count = this.#uses.get(invitation.id) ?? 0;
    if (invitation.uses > 0 && count >= invitation.uses) {
      throw new RoomError('INVITATION_USED', 'The invitation has been used up');
    }
    const { metadata, permissions } = options as { metadata: unknown; permissions?: PermissionChanges };
    const added = await this.addPeer(roomId, {});
    this.#uses.set(invitation.id, count + 1);
    const changes = { metadata, ...(permissions === undefined ? {} : { permissions }) };

    return { ...added, peer: await this.updatePeer(roomId, added.peer.id, changes) };
  }

  async updateRoom(roomId: string, changes: RoomChanges): Promise<RoomView> {
    const room = this.#room(roomId);
    const { metadata, dataEvents, ...config } = { ...room.config, ...changes };
    room.config = {
      ...config,
      ...(dataEvents === undefined || dataEvents === null || dataEvents.length === 0 ? {} : { dataEvents }),
      ...(metadata === undefined || metadata === null ? {} : { metadata }),
    };

    return room;
  }

  async describedPeers(roomId: string): Promise<string[]> {
    return this.#room(roomId)
      .peers.filter(({ metadata }) => metadata !== null)
      .map(({ id }) => id);
  }

  /** No client connects here. */
  async peersWithClient(roomId: string): Promise<string[]> {
    this.#room(roomId);

    return [];
  }

  async updatePeer(roomId: string, peerId: string, { metadata, permissions }: PeerChanges): Promise<PeerView> {
    const peer = this.#peer(roomId, peerId);
    if (metadata === null) peer.metadata = null;
    else if (metadata !== undefined) peer.metadata = { peer: null, server: metadata };
    if (permissions !== undefined) {
      const { publish, subscribe, metadata: own } = permissions;
      peer.permissions = { publish: publish ?? true, subscribe: subscribe ?? true, metadata: own ?? true };
    }

    return peer;
  }

  async removePeer(roomId: string, peerId: string, { reason }: { reason?: string } = {}): Promise<void> {
    const { peers } = this.#room(roomId);
    peers.splice(peers.indexOf(this.#peer(roomId, peerId)), 1);
    this.removals.push(reason);
  }

  async muteTrack(roomId: string, track: TrackAddress & { muted: boolean }): Promise<TrackView> {
    const found = this.#track(roomId, track);
    found.muted = track.muted;

    return found;
  }

  async removeTrack(roomId: string, track: TrackAddress): Promise<void> {
    const { tracks } = this.#peer(roomId, track.peerId);
    tracks.splice(tracks.indexOf(this.#track(roomId, track)), 1);
  }

  async sendMessage(roomId: string, message: RoomMessage & { to?: readonly string[] }): Promise<{ delivered: number }> {
    const { peers } = this.#room(roomId);
    for (const peerId of message.to ?? []) this.#peer(roomId, peerId);
    this.messages.push(message);

    return { delivered: peers.filter(({ status }) => status === 'connected').length };
  }

  /** Adds a track, as a client would. */
  publish(roomId: string, peerId: string, track: TrackView): void {
    this.#peer(roomId, peerId).tracks.push(track);
  }

  async addComponent(roomId: string, type: ComponentType, options: unknown): Promise<ComponentView> {
    const room = this.#room(roomId);
    if (type === 'rtsp') throw new RoomError('COMPONENT_TYPE_DISABLED', `Components of type ${type} are disabled`);
    this.#checkOptions(options, {});
    const properties = propertiesOf(type, options as Record<string, unknown>);
    const component: ComponentView = { id: randomUUID(), type, properties, tracks: [] };
    room.components.push(component);

    return component;
  }

  async removeComponent(roomId: string, componentId: string): Promise<void> {
    const room = this.#room(roomId);
    room.components.splice(room.components.indexOf(this.#component(room, componentId)), 1);
  }

  async updateComponent(roomId: string, componentId: string, { paused }: { paused: boolean }): Promise<ComponentView> {
    const component = this.#component(this.#room(roomId), componentId);
    if (component.type !== 'recording') {
      throw new RoomError('NOT_A_RECORDING', `Component ${componentId} is not a Recording component`);
    }
    component.properties = { ...component.properties, paused };

    return component;
  }

  async subscribeComponent(roomId: string, componentId: string, origins: readonly string[]): Promise<void> {
    const component = this.#component(this.#room(roomId), componentId);
    if (component.type !== 'hls' && component.type !== 'recording') {
      throw new RoomError('NOT_SUBSCRIBABLE', 'Subscribe mode is supported only for HLS and Recording components');
    }
    if (component.properties['subscribeMode'] === 'auto') {
      throw new RoomError('SUBSCRIBE_MODE_AUTO', `Component ${componentId} option \`subscribe_mode\` is set to :auto`);
    }
    this.subscriptions.push([componentId, origins]);
  }

  async dial(roomId: string, componentId: string, phoneNumber: string): Promise<void> {
    this.#sip(roomId, componentId);
    this.calls.push(phoneNumber);
  }

  async hangUp(roomId: string, componentId: string): Promise<void> {
    this.#sip(roomId, componentId);
    this.calls.push('hang up');
  }

  async resumePeer(): Promise<AttachRefusal> {
    return 'peer not found';
  }

  async attachPeer(): Promise<AttachRefusal> {
    return 'invalid token';
  }

  readToken(token: string): { roomId: string; peerId: string } | 'invalid token' {
    const [, roomId, peerId] = /^token of (\S+) (\S+)$/.exec(token) ?? [];

    return roomId === undefined || peerId === undefined ? 'invalid token' : { roomId, peerId };
  }

  async openRelay(roomId: string, peerId: string): Promise<PeerRelay> {
    this.#check();
    this.#peer(roomId, peerId);

    return peerRelay(ENDPOINT, RELAY);
  }

  /** The media plane and room of these sessions accept everything immediately. */
  async openSession({ roomId, peerId, sessionId }: SessionAddress, request: string): Promise<string> {
    const { config } = this.#room(roomId);
    this.#peer(roomId, peerId);
    const session = createHttpSession({
      peerId,
      client: 'http',
      videoCodec: config.videoCodec,
      enableSimulcast: true,
      publishes: ['audio', 'video'],
      endpoint: { ...ENDPOINT, fingerprint: { algorithm: 'sha-256', value: 'AB:CD' } },
      relay: RELAY,
      randomBytes: (n) => randomBytes(n),
    });
    this.#sessions.set(sessionId, (text) => answerOf(session, [{ type: 'clientEvent', text }]));

    return this.askSession({ roomId, peerId, sessionId }, request);
  }

  async askSession({ sessionId }: SessionAddress, request: string): Promise<string> {
    const ask = this.#sessions.get(sessionId);
    if (ask === undefined) throw new RoomError('SESSION_NOT_FOUND', `Session ${sessionId} does not exist`);

    return ask(request);
  }

  async closeSession(session: SessionAddress): Promise<void> {
    if (!this.#sessions.delete(session.sessionId)) {
      throw new RoomError('SESSION_NOT_FOUND', `Session ${session.sessionId} does not exist`);
    }
  }

  #sip(roomId: string, componentId: string): void {
    if (this.#component(this.#room(roomId), componentId).type !== 'sip') {
      throw new RoomError('NOT_A_SIP_COMPONENT', `Component ${componentId} is not a SIP component`);
    }
  }

  #room(roomId: string): RoomView {
    this.#check();
    const room = this.#rooms.get(roomId);
    if (room === undefined) throw new RoomError('ROOM_NOT_FOUND', `Room ${roomId} does not exist`);

    return room;
  }

  #peer(roomId: string, peerId: string): PeerView {
    const peer = this.#room(roomId).peers.find(({ id }) => id === peerId);
    if (peer === undefined) throw new RoomError('PEER_NOT_FOUND', `Peer ${peerId} does not exist`);

    return peer;
  }

  #track(roomId: string, { peerId, trackId }: TrackAddress): TrackView {
    const track = this.#peer(roomId, peerId).tracks.find(({ id }) => id === trackId);
    if (track === undefined) throw new RoomError('TRACK_NOT_FOUND', `Track ${trackId} does not exist`);

    return track;
  }

  #component(room: RoomView, componentId: string): ComponentView {
    const component = room.components.find((one) => one.id === componentId);
    if (component === undefined) throw new RoomError('COMPONENT_NOT_FOUND', `Component ${componentId} does not exist`);

    return component;
  }

  #checkOptions(options: unknown, types: Readonly<Record<string, string>>): void {
    const fits =
      typeof options === 'object' &&
      options !== null &&
      !Array.isArray(options) &&
      Object.entries(options).every(([name, value]) => types[name] === undefined || typeof value === types[name]);
    if (!fits) throw new RoomError('INVALID_OPTIONS', 'Invalid request body structure');
  }

  #check(): void {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }
}

function propertiesOf(type: ComponentType, options: Record<string, unknown>): Record<string, unknown> {
  const subscribeMode = options['subscribeMode'] ?? 'auto';

  if (type === 'hls') {
    return {
      playable: false,
      lowLatency: false,
      persistent: false,
      targetWindowDuration: null,
      subscribeMode,
      s3: null,
    };
  }
  if (type === 'file') return { filePath: options['filePath'] ?? 'video.h264', framerate: 30 };
  if (type === 'sip') return { registrarCredentials: { address: 'sip.example', username: 'u', password: 'p' } };

  return { subscribeMode, ...(options['audioOnly'] === true ? { audioOnly: true } : {}) };
}

function answerOf(session: PeerSession, inputs: SessionInput[]): string {
  for (let input = inputs.shift(); input !== undefined; input = inputs.shift()) {
    for (const action of session.handle(input)) {
      if (action.type === 'send') return action.text;
      if (action.type === 'join') inputs.push({ type: 'joined', endpoints: [] });
      if (action.type === 'negotiate') inputs.push({ type: 'negotiated', generation: action.negotiation.generation });
    }
  }
  throw new Error('the session did not answer');
}
