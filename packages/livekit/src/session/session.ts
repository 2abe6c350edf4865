import {
  type AddTrackRequest,
  DisconnectReason,
  LeaveRequest_Action,
  ParticipantInfo_State,
  RoomUpdate,
  type SessionDescription,
  SignalRequest,
  SignalResponse,
  type SubscriptionPermission,
  type SyncState,
  TrackPublishedResponse,
  TrackUnpublishedResponse,
  type UpdateParticipantMetadata,
  type UpdateSubscription,
} from '@livekit/protocol';
import { Identifiers } from '@bloom/negotiation';
import type {
  CreatePeerSession,
  Endpoint,
  PeerSession,
  PeerSessionOptions,
  RoomMessage,
  SessionAction,
  SessionInput,
} from '@bloom/rooms';
import type { MediaCommand, TrackKind } from '@bloom/sfu';
import { isPowerOfTwo } from '@bloom/time';
import type { Claims } from '../grants.js';
import { textOf } from '../json-text.js';
import { asRecord, recordOf } from '../record.js';
import { fromBackend, OutgoingData, RELIABLE_LABEL } from './data.js';
import { encodeJoin, encodeUpdate } from './encoded.js';
import { Figures } from './figures.js';
import { Me } from './me.js';
import { Muting } from './muting.js';
import { Negotiating } from './negotiating.js';
import { OwnUpdates } from './own-record.js';
import { Participants } from './participants.js';
import { Publishing } from './publishing.js';
import { leave, type Message, REFUSALS, refusedDataTrack, refusedTrack } from './responses.js';
import { fromSession, type JoinMessage, readToSession } from './session-message.js';
import { access, audienceOf, isWanted } from './sharing.js';
import { REFILL_MS } from './ticked-allowance.js';
import { TrackSettings } from './track-settings.js';

/** Creates the sans-IO machine that serves one LiveKit client; see `PeerSession`. */
export const createLivekitSession: CreatePeerSession = (options) => new Session(options);

/** Time limit from the join until the client's media is connected. */
const MEDIA_TIMEOUT_MS = 60_000;

class Session implements PeerSession {
  readonly #options: PeerSessionOptions;
  readonly #identifiers: Identifiers;
  readonly #others = new Participants();
  readonly #publishing: Publishing;
  readonly #negotiating: Negotiating;
  readonly #settings: TrackSettings;
  readonly #data = new OutgoingData(this.#others);
  readonly #updates = new OwnUpdates();
  #publishes: ReadonlySet<TrackKind>;
  /** Undefined until the client has joined. */
  #me: Me | undefined;
  #join: JoinMessage | undefined;
  #phase: 'new' | 'joining' | 'joined' | 'left' = 'new';
  #mediaUp = false;
  /** False while no node holds a websocket of the client. */
  #isHeld = true;
  /** Not all may receive the client's tracks. */
  #isPrivate = false;
  readonly #muting: Muting;
  readonly #figures: Figures;
  #ignored = 0;
  #actions: SessionAction[] = [];

  constructor(options: PeerSessionOptions) {
    this.#options = options;
    this.#publishes = new Set(options.publishes);
    this.#identifiers = new Identifiers(options.randomBytes);
    this.#settings = new TrackSettings(options.peerId);
    this.#publishing = new Publishing(options, {
      identifiers: this.#identifiers,
      grants: () => this.#me!.grants,
      mayPublish: (kind) => this.#publishes.has(kind),
    });
    const act = (action: SessionAction): void => this.#act(action);
    const send = (message: Message): void => this.#send(message);
    this.#figures = new Figures({
      act,
      send,
      sendBytes: (bytes) => this.#sendBytes(bytes),
      sidOf: (id) => (id === options.peerId ? this.#me?.sid : this.#others.get(id)?.sid),
    });
    this.#muting = new Muting({
      peerId: options.peerId,
      publishing: this.#publishing,
      act,
      send,
      changed: () => this.#me?.touch(),
    });
    this.#negotiating = new Negotiating({
      options,
      identifiers: this.#identifiers,
      publishing: this.#publishing,
      others: this.#others,
      settings: this.#settings,
      isWanted: (track) => isWanted(track, this.#self),
      isMediaUp: () => this.#mediaUp,
      act,
      send,
      leave: (reason, action) => this.#leave(reason, action),
    });
  }

  handle(input: SessionInput): readonly SessionAction[] {
    this.#actions = [];
    if (this.#phase === 'left') return [];
    this.#handle(input);
    if (this.#phase === 'joined') {
      const starts = [this.#updates.bytes, this.#data.fields].filter((each) => each.startsTimer());
      if (starts.length > 0) this.#act({ type: 'setTimer', name: 'hold', ms: REFILL_MS });
      this.#tellChanges();
      this.#negotiating.consider(input);
    }

    return this.#actions;
  }

  descriptions(): { offer?: string; answer?: string } {
    return this.#negotiating.descriptions;
  }

  #handle(input: SessionInput): void {
    switch (input.type) {
      case 'clientEvent':
        return this.#fromHolder(input.text);
      case 'joined':
        return this.#joined(input.endpoints);
      case 'endpointAdded':
        return this.#endpointAdded(input.endpoint);
      case 'endpointUpdated':
        return this.#others.update(input.endpointId, input);
      case 'endpointRemoved':
        this.#figures.forget(input.endpointId);
        return this.#others.remove(input.endpointId);
      case 'tracksAdded':
        return this.#others.addTracks(input.endpointId, input.tracks);
      case 'tracksRemoved':
        return this.#others.removeTracks(input.endpointId, input.trackIds);
      case 'trackUpdated':
        return this.#others.changeTrack(input.endpointId, input.trackId, { metadata: input.metadata });
      case 'trackMuted':
        return this.#others.changeTrack(input.endpointId, input.trackId, { muted: input.muted });
      case 'tracksWithheld':
        return this.#withheldFromMe(input.endpointId, input.trackIds, input.withheld);
      case 'qualitiesChanged':
        return this.#figures.changed(input.qualities);
      case 'layersNeeded':
        for (const message of this.#publishing.setNeeded(input.trackId, input.highest)) this.#send(message);
        return undefined;
      case 'voiceActivity':
        return this.#voice(input.trackId, input.status === 'speech');
      case 'negotiated':
        if (input.receiver === true) return this.#negotiating.receiverNegotiated(input.generation);
        return this.#negotiated(input.generation);
      case 'dataPacket':
        return this.#dataPacket(input.label, input.data);
      case 'dataChannelClosed':
        // True when the client has missed messages that had to arrive.
        if (input.label !== RELIABLE_LABEL || input.reason !== 'backlog') return undefined;
        return this.#leave(DisconnectReason.STATE_MISMATCH, LeaveRequest_Action.RECONNECT);
      case 'dtlsConnected':
        return this.#connected();
      case 'setPublishes':
        return this.#permitted(input.kinds, input.permissions);
      case 'socketLost':
        this.#isHeld = false;
        return this.#negotiating.away();
      case 'recordSet':
        return this.#recordSet(input.metadata);
      case 'roomUpdated':
        return this.#roomUpdated(input.metadata);
      case 'roomMessage':
        return this.#roomMessage(input.message);
      case 'trackMutedByServer':
        return this.#muting.byServer(input.trackId, input.muted);
      case 'trackRemovedByServer':
        return this.#unpublished([this.#publishing.withdraw(input.trackId)]);
      case 'timer':
        if (input.name === 'offer') this.#negotiating.late();
        else if (input.name === 'quality') this.#figures.tell();
        else if (input.name === 'hold') for (const each of [this.#updates.bytes, this.#data.fields]) each.refill();
        else if (!this.#mediaUp) this.#leave(DisconnectReason.JOIN_FAILURE, LeaveRequest_Action.DISCONNECT);
        return undefined;
      default:
        return undefined;
    }
  }

  #fromHolder(text: string): void {
    const message = readToSession(text);
    if (message?.type === 'join') {
      if (this.#phase !== 'new') return undefined;
      this.#join = message.join;
      this.#phase = 'joining';
      this.#me = new Me(this.#options, message.join);
      const { grants, record } = message.join;
      const shown = {
        ...(grants.hidden ? { hidden: true } : {}),
        ...(record.kind === 'egress' ? { exempt: true } : {}),
      };
      const client = record.kind === 'standard' ? 'livekit' : `livekit ${record.kind}`;
      return this.#act({ type: 'join', metadata: null, client, name: record.identity, ...shown });
    }
    if (this.#phase !== 'joined') return undefined;
    if (message === undefined) return this.#ignore('a frame that cannot be decoded');

    if (message.type === 'away') return this.#negotiating.away();

    return message.type === 'resume' ? this.#resume(message.claims) : this.#request(message.request);
  }

  #joined(endpoints: readonly Endpoint[]): void {
    const { identity } = this.#self.record;
    for (const endpoint of endpoints) if (endpoint.id !== this.#options.peerId) this.#add(endpoint);
    this.#phase = 'joined';
    // An older participant with the same identity is about to leave.
    const others = this.#others.encodeAll(identity);
    this.#sendBytes(encodeJoin(this.#self.joinResponse(this.#others.counts()), others));
    this.#act({ type: 'setTimer', name: 'retry', ms: MEDIA_TIMEOUT_MS });
    const { requests = [], twoConnections = false } = this.#join ?? {};
    this.#negotiating.begin({ twoConnections, primary: this.#self.isSubscriberPrimary });
    this.#join = undefined;
    for (const request of requests) this.#request(SignalRequest.fromBinary(Buffer.from(request, 'base64')));
  }

  #endpointAdded(endpoint: Endpoint): void {
    if (endpoint.id === this.#options.peerId) return;
    const added = this.#add(endpoint);
    if (added?.isNative !== true || added.record.identity !== this.#self.record.identity) return;
    // The new join of an identity wins.
    this.#leave(DisconnectReason.DUPLICATE_IDENTITY, LeaveRequest_Action.DISCONNECT);
  }

  #add(endpoint: Endpoint): ReturnType<Participants['add']> {
    this.#figures.quality(endpoint.id, endpoint.quality);
    return this.#others.add(endpoint);
  }

  #request(request: SignalRequest): void {
    const { message } = request;
    switch (message.case) {
      case 'offer':
        return this.#offer(message.value);
      case 'answer':
        return this.#negotiating.answer(message.value);
      case 'addTrack':
        return this.#addTrack(message.value);
      case 'mute':
        return this.#muting.byClient(message.value.sid, message.value.muted);
      case 'subscription':
        return this.#subscribe(message.value);
      case 'trackSetting': {
        for (const track of this.#others.tracksWith(message.value.trackSids)) {
          const commands = this.#settings.apply(track, message.value);
          if (this.#negotiating.carries(track)) for (const command of commands) this.#media(command);
        }
        return undefined;
      }
      case 'updateMetadata':
        return this.#updateMetadata(message.value);
      case 'subscriptionPermission':
        return this.#share(message.value);
      case 'syncState':
        return this.#sync(message.value);
      case 'leave':
        return this.#leave(DisconnectReason.CLIENT_INITIATED, LeaveRequest_Action.DISCONNECT);
      case 'publishDataTrackRequest':
        return this.#send(refusedDataTrack(message.value));
      // Candidates are not needed, and the others request nothing that this server does.
      default:
        return undefined;
    }
  }

  #offer(offer: SessionDescription): void {
    const outcome = this.#negotiating.offer(offer);
    if (outcome === undefined) return;
    if (outcome.removed.length > 0) this.#act({ type: 'unpublish', trackIds: outcome.removed });
    if (outcome.added.length > 0) this.#act({ type: 'publish', tracks: outcome.added });
    for (const { trackId, metadata } of outcome.added)
      if (asRecord(metadata)['muted'] === true) this.#muting.apply(trackId, true);
    this.#unpublished(outcome.failed);
    if (outcome.added.length > 0 || outcome.removed.length > 0) this.#self.touch();
    this.#self.reach(ParticipantInfo_State.JOINED);
  }

  #negotiated(generation: number): void {
    const waiting = this.#negotiating.negotiated(generation, () => this.#tellChanges());
    if (waiting !== undefined) this.#offer(waiting);
  }

  #connected(): void {
    if (!this.#mediaUp) this.#act({ type: 'send', text: fromSession.connected() });
    this.#mediaUp = true;
    this.#act({ type: 'clearTimer', name: 'retry' });
    this.#me?.reach(ParticipantInfo_State.ACTIVE);
    this.#figures.connected();
  }

  #dataPacket(label: string, bytes: Uint8Array): void {
    const { grants, record } = this.#self;
    if (!grants.canPublishData) return;
    const sender = { ...record, sid: this.#self.sid, hidden: grants.hidden };
    const delivery = this.#data.deliver(label, bytes, sender);
    if (delivery === 'too many fields') return this.#ignore(`a data packet with ${delivery}`);
    if (delivery !== undefined) this.#media({ type: 'sendPacket', ...delivery });
  }

  #roomMessage(message: RoomMessage): void {
    this.#media({ type: 'sendPacket', ...fromBackend(message, this.#options.peerId) });
  }

  #roomUpdated(metadata: unknown): void {
    const room = this.#self.updateRoom(textOf(metadata), this.#others.counts());
    this.#send({ case: 'roomUpdate', value: new RoomUpdate({ room }) });
  }

  #addTrack(request: AddTrackRequest): void {
    const outcome = this.#publishing.add(request);
    if (outcome.type === 'refused') return this.#send(refusedTrack(request, REFUSALS[outcome.why], outcome.message));
    if (outcome.type === 'ignored') return undefined;
    this.#send({
      case: 'trackPublished',
      value: new TrackPublishedResponse({ cid: request.cid, track: outcome.track }),
    });
    // The client has offered the track before it requested it.
    if (outcome.needsOffer) this.#negotiating.offerAgain();
  }

  #subscribe({ trackSids, participantTracks, subscribe }: UpdateSubscription): void {
    const sids = [...trackSids, ...participantTracks.flatMap((each) => each.trackSids)];
    for (const track of this.#others.tracksWith(sids)) track.subscribed = subscribe;
  }

  /** Applies the state that the client of a resumed session reports. */
  #sync({ subscription, trackSidsDisabled, publishTracks }: SyncState): void {
    const sids = publishTracks.flatMap(({ track }) => (track === undefined ? [] : [track.sid]));
    if (!this.#publishing.hasAll(sids))
      return this.#leave(DisconnectReason.STATE_MISMATCH, LeaveRequest_Action.RECONNECT);
    if (subscription !== undefined) this.#subscribe(subscription);
    for (const track of this.#others.tracksWith(trackSidsDisabled))
      for (const each of this.#settings.disable(track)) this.#media(each);

    return undefined;
  }

  #updateMetadata(update: UpdateParticipantMetadata): void {
    const { fields, answer } = this.#updates.admit(update, this.#self);
    if (fields !== undefined) this.#act({ type: 'send', text: fromSession.record(fields) });
    if (answer !== undefined) this.#send(answer);
  }

  /** Shares the client's tracks with all, or with some. */
  #share(permission: SubscriptionPermission): void {
    const audience = audienceOf(permission, this.#others, this.#publishing);
    // Every browser says after its join that all may subscribe.
    if (audience === null && !this.#isPrivate) return;
    this.#isPrivate = audience !== null;
    this.#act({ type: 'setAudience', audience });
  }

  #withheldFromMe(endpointId: string, trackIds: readonly string[], withheld: boolean): void {
    for (const { trackId } of this.#others.withhold(endpointId, trackIds, withheld))
      if (withheld) this.#voice(trackId, false);
  }

  /** The backend, or the client through it, has changed what others see of this participant. */
  #recordSet(metadata: unknown): void {
    const record = recordOf({ server: metadata });
    if (record === undefined || this.#me === undefined) return;
    this.#me.setRecord({ ...record, identity: this.#me.record.identity });
    this.#withdrawDenied();
    this.#tellGrants();
  }

  #permitted(
    kinds: readonly TrackKind[],
    permissions: Extract<SessionInput, { type: 'setPublishes' }>['permissions'],
  ): void {
    this.#publishes = new Set(kinds);
    if (this.#me === undefined || permissions === undefined || !this.#me.permit(kinds, permissions)) return;
    this.#withdrawDenied();
    this.#tellGrants();
  }

  /** Takes back the client's tracks of kinds and sources that it may no longer publish. */
  #withdrawDenied(): void {
    const trackIds = this.#publishing.dropDenied();
    // The room knows kinds only, so the media plane may still receive them.
    for (const trackId of trackIds) this.#media({ type: 'removeTrack', peerId: this.#options.peerId, trackId });
    if (trackIds.length > 0) this.#act({ type: 'unpublish', trackIds });
    this.#unpublished(trackIds.map((trackId) => this.#publishing.withdraw(trackId)));
  }

  #tellGrants(): void {
    const { grants, record } = this.#self;
    this.#act({ type: 'send', text: fromSession.grants(grants, record) });
  }

  #unpublished(sids: readonly (string | undefined)[]): void {
    for (const trackSid of sids) {
      if (trackSid === undefined) continue;
      this.#self.touch();
      this.#send({ case: 'trackUnpublished', value: new TrackUnpublishedResponse({ trackSid }) });
    }
  }

  #voice(trackId: string, active: boolean): void {
    const track = [...this.#others.tracks()].find((each) => each.trackId === trackId);
    this.#figures.voice(track, active);
  }

  /** `claims`: of a client that returns through another node, which cannot check them. */
  #resume(claims: Claims | undefined): void {
    this.#isHeld = true;
    if (claims !== undefined && !this.#self.mayContinue(claims))
      return this.#leave(DisconnectReason.STATE_MISMATCH, LeaveRequest_Action.RECONNECT);
    this.#send({ case: 'reconnect', value: this.#self.reconnectResponse(this.#data.lastSequence) });
    this.#self.touch();
    this.#others.repeatAccess();
    this.#sendBytes(encodeUpdate([this.#describeSelf(), ...this.#others.encodeAll()]));
    this.#self.told();
    for (const message of this.#publishing.repeatNeeded()) this.#send(message);
    this.#figures.repeat();
    this.#negotiating.resume();
    // The other node knows the client's permissions as the token has them.
    if (claims !== undefined) this.#tellGrants();
  }

  /** Sends all changes, of others and of the client itself. */
  #tellChanges(): void {
    const me = this.#self;
    const changes = this.#others.takeChanges();
    if (me.isChanged) {
      changes.push(this.#describeSelf());
      me.told();
    }
    if (changes.length > 0) this.#sendBytes(encodeUpdate(changes));
    // A client ignores what concerns a track that it does not know.
    for (const track of this.#others.takeAccess()) this.#send(access(track));
  }

  #describeSelf(): Uint8Array {
    return this.#self.describe(this.#publishing.infos()).toBinary();
  }

  /** Ends the session; the holder of the websocket then removes the peer. */
  #leave(reason: DisconnectReason, action: LeaveRequest_Action): void {
    this.#send(leave(reason, action));
    if (this.#isHeld) this.#act({ type: 'send', text: fromSession.leave({ reason, action }) });
    else this.#act({ type: 'end' });
    for (const name of ['offer', 'retry', 'hold', 'quality'] as const) this.#act({ type: 'clearTimer', name });
    this.#phase = 'left';
  }

  get #self(): Me {
    if (this.#me === undefined) throw new Error('the client has not joined');
    return this.#me;
  }

  /** Logs ignored frames 1, 2, 4, 8 and so on: a client can send garbage at any rate. */
  #ignore(reason: string): void {
    this.#ignored += 1;
    if (isPowerOfTwo(this.#ignored)) this.#warn('livekit.frame_ignored', `${reason} (${this.#ignored} so far)`);
  }

  #warn(event: string, detail: string): void {
    this.#act({ type: 'warn', event, detail });
  }

  #send(message: Message): void {
    this.#sendBytes(new SignalResponse({ message }).toBinary());
  }

  /** Sends a SignalResponse. */
  #sendBytes(bytes: Uint8Array): void {
    this.#act({ type: 'send', text: fromSession.frame(bytes) });
  }

  #media(command: MediaCommand): void {
    this.#act({ type: 'media', command });
  }

  #act(action: SessionAction): void {
    this.#actions.push(action);
  }
}
