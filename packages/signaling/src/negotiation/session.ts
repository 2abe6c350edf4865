import { describePublication, Identifiers, Publications, UnacceptableOffer } from '@bloom/negotiation';
import {
  jsonEqual,
  type CreatePeerSession,
  type Endpoint,
  type PeerPermissions,
  type PeerSession,
  type PeerSessionOptions,
  type SessionAction,
  type SessionInput,
} from '@bloom/rooms';
import type { MediaCommand, TrackKind } from '@bloom/sfu';
import { isPowerOfTwo } from '@bloom/time';
import { parseOffer, WebrtcError, writeAnswer } from '@bloom/webrtc';
import { type ClientEvent, clientOf, parseClientEvent, type SdpOfferEvent } from '../events/client-event.js';
import { serverEvent } from '../events/server-event.js';
import { Cycles } from './cycles.js';
import { KnownRoom } from './known-room.js';
import { CODEC_FEATURES, FEATURES, type Membership, type Phase } from './membership.js';
import { answerMedia, matchSlots, midToTrackId, type OfferPlan } from './outbound.js';
import type { RemoteTrack } from './remote.js';
import { Slots } from './slots.js';

/** Creates the sans-IO machine that serves one client; see `PeerSession`. */
export const createPeerSession: CreatePeerSession = (options) => new Session(options);

/**
 * Time that the client has to apply an answer with new tracks, unless its next offer shows that it has. Nothing else
 * does: Chromium may start the checks of an ICE restart before the answer arrives. The published SDK throws an
 * exception when a track is removed before that.
 */
const APPLY_MS = 500;

class Session implements PeerSession {
  readonly #options: PeerSessionOptions;
  readonly #identifiers: Identifiers;
  #phase: Phase = 'new';
  /** Number of unanswered `join` actions; only the answer to the latest counts. */
  #pendingJoins = 0;
  #membership: Membership;
  #actions: SessionAction[] = [];
  #ignored = 0;
  #denied = 0;
  #publishes: ReadonlySet<TrackKind>;
  #permissions: PeerPermissions | undefined;
  #descriptions: { offer?: string; answer?: string } = {};

  constructor(options: PeerSessionOptions) {
    this.#options = options;
    this.#publishes = new Set(options.publishes);
    this.#permissions = options.permissions;
    this.#identifiers = new Identifiers(options.randomBytes);
    this.#membership = this.#createMembership(null, 0);
  }

  handle(input: SessionInput): readonly SessionAction[] {
    this.#actions = [];
    if (this.#phase !== 'failed') this.#handle(input);
    return this.#actions;
  }

  descriptions(): { offer?: string; answer?: string } {
    return this.#descriptions;
  }

  #handle(input: SessionInput): void {
    if (input.type === 'clientEvent') return this.#clientEvent(parseClientEvent(input.text));
    if (input.type === 'joined') return this.#joined(input.endpoints);
    if (input.type === 'setPublishes') {
      this.#permissions = input.permissions;
      this.#sendPermissions();
      return this.#setPublishes(input.kinds);
    }
    // Any other input before `joined` is covered by it or belongs to an earlier membership.
    if (this.#phase !== 'joined') return undefined;
    const { others, cycles, publications, features } = this.#membership;
    switch (input.type) {
      case 'endpointAdded':
        if (input.endpoint.id === this.#options.peerId) return undefined;
        others.addEndpoint(input.endpoint);
        // Every session hears about every newcomer. A newcomer without tracks needs no search.
        return input.endpoint.tracks.length > 0 ? cycles.consider() : undefined;
      case 'endpointUpdated':
        return others.updateEndpoint(input.endpointId, input.metadata);
      case 'endpointRemoved':
        others.removeEndpoint(input.endpointId);
        return cycles.consider();
      case 'tracksAdded':
        others.addTracks(input.endpointId, input.tracks);
        return cycles.consider();
      case 'tracksRemoved':
        others.removeTracks(input.endpointId, input.trackIds);
        return cycles.consider();
      case 'trackUpdated':
        return others.updateTrack(input.endpointId, input.trackId, input.metadata);
      case 'encodingChanged':
        return others.setEncoding(input);
      case 'trackMuted':
        return others.setMuted(input.endpointId, input.trackId, input.muted);
      case 'trackStalled':
        return others.setStalled(input);
      case 'voiceActivity':
        return others.setVoice(input.trackId, input.status);
      case 'encodingSwitched': {
        const track = others.findTrack(input.trackId);
        if (track?.stage !== 'answered') return undefined;
        return this.#send(
          serverEvent.encodingSwitched({
            endpointId: track.endpointId,
            trackId: track.trackId,
            encoding: input.variant,
            reason: input.reason,
          }),
        );
      }
      case 'bandwidthEstimation':
        return this.#send(serverEvent.bandwidthEstimation(input.estimationBps));
      case 'fallbackWanted':
        return this.#send(serverEvent.fallbackWanted(input.trackId, input.wanted));
      case 'trackMutedByServer':
        if (publications.get(input.trackId) === undefined) return undefined;
        return this.#send(serverEvent.trackMutedByServer(input.trackId, input.muted));
      case 'trackRemovedByServer':
        publications.withdraw(input.trackId);
        this.#act({ type: 'unpublish', trackIds: [input.trackId] });
        // The client learns of it from an answer with an inactive m-line.
        return cycles.request();
      case 'dataChannelClosed':
        return this.#send(serverEvent.dataChannelClosed(input.label, input.reason));
      case 'roomMessage':
        return this.#send(serverEvent.roomMessage(input.message));
      case 'roomMoved':
        return this.#send(serverEvent.roomMoved());
      case 'standby':
        if (!features.includes('standby')) return undefined;
        return this.#send(serverEvent.standby(input.url));
      case 'othersMoved':
        return this.#send(serverEvent.othersMoved());
      case 'negotiated':
        return cycles.isAnswerDue(input.generation) ? this.#answer() : undefined;
      case 'iceConnected':
        return cycles.iceConnected(input.generation);
      case 'dtlsConnected':
        return cycles.dtlsConnected();
      case 'timer':
        if (input.name !== 'apply') return cycles.timer(input.name);
        this.#answerApplied();
        return cycles.consider();
    }
  }

  #clientEvent(event: ClientEvent): void {
    if (event.type === 'invalid') return this.#ignore(event.reason);
    if (event.type === 'connect') {
      if (this.#phase !== 'new') return this.#ignore('a second connect');
      this.#membership = this.#createMembership(event.metadata, this.#membership.cycles.generation);
      const all = this.#options.videoCodec === null ? [...FEATURES, ...CODEC_FEATURES] : FEATURES;
      this.#membership.features = all.filter((feature) => event.features.includes(feature));
      this.#phase = 'joining';
      this.#pendingJoins += 1;
      const moves = this.#membership.features.includes('move') ? { moves: true } : {};
      return this.#act({ type: 'join', metadata: event.metadata, client: clientOf(event.features), ...moves });
    }
    if (this.#phase === 'new') return this.#ignore(`${event.type} before connect`);
    const { publications, others, cycles } = this.#membership;
    switch (event.type) {
      case 'disconnect':
        cycles.close();
        this.#phase = 'new';
        return this.#act({ type: 'leave' });
      case 'updateEndpointMetadata':
        if (jsonEqual(this.#membership.metadata, event.metadata)) return undefined;
        this.#membership.metadata = event.metadata;
        return this.#act({ type: 'setMetadata', metadata: event.metadata });
      case 'updateTrackMetadata': {
        const { trackId, metadata } = event;
        const publication = publications.get(trackId);
        if (publication === undefined) return this.#ignore('metadata of an unknown track');
        if (jsonEqual(publication.metadata, metadata)) return undefined;
        publication.metadata = metadata;
        return this.#act({ type: 'setTrackMetadata', trackId, metadata });
      }
      case 'setEncoding': {
        // Clients repeat these hundreds of times, so a repetition must cost nothing.
        const { trackId, encoding, enabled } = event;
        const publication = publications.get(trackId);
        if (publication === undefined || !publication.inbound.rids.includes(encoding)) return undefined;
        if (publication.disabled.has(encoding) !== enabled) return undefined;
        if (enabled) publication.disabled.delete(encoding);
        else publication.disabled.add(encoding);
        return this.#act({ type: 'setEncoding', trackId, encoding, enabled });
      }
      case 'setMuted': {
        const { trackId, muted } = event;
        const publication = publications.get(trackId);
        if (publication === undefined) return this.#ignore('muting of an unknown track');
        if (publication.muted === muted) return undefined;
        publication.muted = muted;
        this.#act({ type: 'setTrackMuted', trackId, muted });
        return this.#media({ type: 'setTrackMuted', peerId: this.#options.peerId, trackId, muted });
      }
      case 'trackVariantBitrates': {
        const bitratesBps = publications.mergeBitrates(event.trackId, event.bitrates);
        if (bitratesBps === undefined) return this.#ignore('bitrates of an unknown track');
        const { peerId } = this.#options;
        return this.#media({ type: 'setTrackBitrates', peerId, trackId: event.trackId, bitratesBps });
      }
      case 'setTargetTrackVariant': {
        const track = others.findTrack(event.trackId);
        if (track === undefined || track.stage === 'pending' || !track.hasVariant(event.variant)) {
          return this.#ignore('a target variant that does not exist');
        }
        track.target = event.variant;
        return track.stage === 'answered' ? this.#setTarget(track) : undefined;
      }
      case 'setTrackPaused': {
        const track = others.findTrack(event.trackId);
        if (track === undefined || track.stage === 'pending') return this.#ignore('a pause of an unknown track');
        if (track.paused === event.paused) return undefined;
        track.paused = event.paused;
        return track.stage === 'answered' ? this.#setPaused(track) : undefined;
      }
      case 'renegotiateTracks':
        if (this.#phase !== 'joined') return this.#ignore('renegotiateTracks before connected');
        return cycles.request();
      case 'sdpOffer':
        if (!cycles.acceptOffer()) return this.#ignore('an offer that was not asked for');
        return this.#offer(event);
      case 'moved':
        return this.#act({ type: 'moved' });
      case 'noted':
        return undefined;
    }
  }

  #joined(endpoints: readonly Endpoint[]): void {
    if (this.#pendingJoins > 0) this.#pendingJoins -= 1;
    if (this.#phase !== 'joining' || this.#pendingJoins > 0) return;
    this.#phase = 'joined';
    const { others, cycles, features } = this.#membership;
    others.join(
      this.#options.peerId,
      endpoints.filter((endpoint) => endpoint.id !== this.#options.peerId),
      features,
    );
    this.#sendPermissions();
    cycles.consider();
  }

  #sendPermissions(): void {
    const asked = this.#membership.features.includes('permissions') && this.#phase === 'joined';
    if (asked && this.#permissions !== undefined) this.#send(serverEvent.permissions(this.#permissions));
  }

  #setPublishes(kinds: readonly TrackKind[]): void {
    const before = this.#publishes;
    this.#publishes = new Set(kinds);
    if (this.#phase !== 'joined' || (before.size === kinds.length && kinds.every((kind) => before.has(kind)))) return;
    const { publications, cycles, ice } = this.#membership;
    const dropped = publications.dropDenied();
    if (dropped.length > 0) this.#act({ type: 'unpublish', trackIds: dropped });
    // The client's next offer shows what it now wants to publish. A client that has not made its first offer may have
    // no m-line.
    if (ice !== undefined) cycles.request();
  }

  #startCycle(): void {
    const { others, slots, offeredSsrcs } = this.#membership;
    for (const track of others.announce()) slots.assign(track, offeredSsrcs);
    this.#send(serverEvent.offerData(slots.count(), this.#options.endpoint, this.#options.relay));
  }

  #offer(event: SdpOfferEvent): void {
    const { publications, slots, others, cycles, ice: previous } = this.#membership;
    this.#descriptions = { offer: event.sdp };
    this.#answerApplied();
    try {
      const parsed = parseOffer(event.sdp);
      const accepted = publications.accept(parsed.media, event, {
        trackId: (trackId) => others.findTrack(trackId) !== undefined,
        mid: (mid) => slots.byMid(mid) !== undefined,
      });
      if (accepted.denied > 0) this.#deny(accepted.denied);
      const plan = matchSlots({ ...parsed, decrypts: event.encrypted === true }, accepted.media, slots);

      // RFC 8445, section 9: new credentials from the client mean a restart, which requires new ones from us.
      const { iceUfrag, icePwd, fingerprint } = parsed.transport;
      const restarted = previous?.remoteUfrag !== iceUfrag;
      const { ufrag, pwd } = restarted ? this.#identifiers.iceCredentials() : toCredentials(previous);
      const generation = cycles.negotiating(restarted);
      this.#membership.ice = { localUfrag: ufrag, localPwd: pwd, remoteUfrag: iceUfrag };
      this.#membership.offer = { plan, parsed };
      this.#membership.offeredSsrcs = new Set(
        parsed.media.flatMap((line) =>
          line.sources.flatMap(({ ssrc, rtx }) => (rtx === undefined ? [ssrc] : [ssrc, rtx])),
        ),
      );

      // The media plane comes first: no track may be announced that it does not know.
      this.#act({
        type: 'negotiate',
        negotiation: {
          generation,
          ice: { localUfrag: ufrag, localPwd: pwd, remoteUfrag: iceUfrag, remotePwd: icePwd },
          fingerprint,
          inbound: [...publications].flatMap(({ inbound, fallback }) => [inbound, ...(fallback ? [fallback] : [])]),
          outbound: plan.outbound,
          ...(parsed.media.some(({ isData }) => isData) ? { data: true } : {}),
        },
      });
      if (accepted.removed.length > 0) this.#act({ type: 'unpublish', trackIds: accepted.removed });
      if (accepted.added.length > 0) {
        this.#act({ type: 'publish', tracks: accepted.added.map((publication) => describePublication(publication)) });
      }
    } catch (error) {
      if (error instanceof WebrtcError && error.code === 'INVALID_SDP') {
        this.#warn('offer.invalid', error.message);
        return this.#fail('Invalid SDP offer');
      }
      if (error instanceof UnacceptableOffer) return this.#fail(error.message);
      throw error;
    }
  }

  #answer(): void {
    const { offer, ice, slots, cname, sdpSessionId, cycles } = this.#membership;
    if (offer === undefined || ice === undefined) return;
    this.#membership.offer = undefined;
    const sdp = writeAnswer({
      offer: offer.parsed,
      sessionId: sdpSessionId,
      version: cycles.generation,
      ice: { ufrag: ice.localUfrag, pwd: ice.localPwd },
      fingerprint: this.#options.endpoint.fingerprint,
      data: true,
      media: offer.plan.media.map((media) => answerMedia(media, cname)),
    });
    this.#descriptions = { ...this.#descriptions, answer: sdp };
    this.#send(serverEvent.sdpAnswer(sdp, midToTrackId(offer.plan, this.#membership.publications)));
    for (const candidate of serverEvent.candidates(this.#options.endpoint)) this.#send(candidate);
    this.#settleSlots(offer.plan);
    cycles.answered({ incomplete: [...slots].some((slot) => slot.mid === undefined) });
  }

  /** Updates the slots after the answer was sent: the client knows the tracks, and dead slots become free. */
  #settleSlots(plan: OfferPlan): void {
    const applying: RemoteTrack[] = [];
    for (const { slot, codec, lacks } of plan.media) {
      if (slot === undefined) continue;
      const { track } = slot;
      if (track === undefined) {
        slot.doubtful = false;
        continue;
      }
      const isNew = track.stage !== 'answered';
      track.stage = 'answered';
      if (!track.gone) this.#reportLack(track, lacks);
      track.getsFallback = codec !== null && codec.name !== track.info.codec;
      this.#membership.others.sendState(track);
      if (track.gone) {
        track.applied = true;
        slot.track = undefined;
        slot.doubtful = this.#membership.cycles.mayHaveCrossed;
      } else if (isNew) {
        applying.push(track);
        this.#membership.others.sendChanges(track);
        this.#setTarget(track);
        if (track.paused) this.#setPaused(track);
      }
    }
    this.#membership.applying = applying;
    if (applying.length > 0) this.#act({ type: 'setTimer', name: 'apply', ms: APPLY_MS });
  }

  /** Reports once why the client gets nothing of a track. */
  #reportLack(track: RemoteTrack, lacks: RemoteTrack['lacks']): void {
    const { trackId: id, info, lacks: before } = track;
    track.lacks = lacks;
    if (lacks === null || lacks === before) return;
    if (lacks === 'NO_KEY') this.#warn('peer.no_key', `track ${id} is encrypted; the client does not decrypt`);
    else this.#warn('peer.no_codec', `track ${id} is sent in ${info.codec}, which the client does not offer`);
    if (this.#membership.features.includes('trackUnavailable')) this.#send(serverEvent.trackUnavailable(id, lacks));
  }

  #answerApplied(): void {
    for (const track of this.#membership.applying) track.applied = true;
    this.#membership.applying = [];
  }

  #setTarget({ trackId, target }: RemoteTrack): void {
    const { peerId } = this.#options;
    if (target !== undefined) this.#media({ type: 'setTargetVariant', peerId, trackId, variant: target });
  }

  #setPaused({ trackId, paused }: RemoteTrack): void {
    this.#media({ type: 'setTrackPaused', peerId: this.#options.peerId, trackId, paused });
  }

  #createMembership(metadata: unknown, lastGeneration: number): Membership {
    const identifiers = this.#identifiers;
    const others = new KnownRoom((text) => this.#send(text));
    return {
      others,
      slots: new Slots(identifiers),
      publications: new Publications({
        videoCodec: this.#options.videoCodec,
        enableSimulcast: this.#options.enableSimulcast,
        mayPublish: (kind) => this.#publishes.has(kind),
        refusesTracks: () => ['trackRefused', 'fallback'].some((each) => this.#membership.features.includes(each)),
        takesFallbacks: () => this.#membership.features.includes('fallback'),
        identifiers,
      }),
      cycles: new Cycles(
        {
          isNeeded: () => others.needsCycle(),
          start: () => this.#startCycle(),
          setTimer: (name, ms) => this.#act({ type: 'setTimer', name, ms }),
          clearTimer: (name) => this.#act({ type: 'clearTimer', name }),
        },
        lastGeneration,
      ),
      metadata,
      features: [],
      ice: undefined,
      sdpSessionId: identifiers.sessionId(),
      cname: identifiers.token(),
      offer: undefined,
      offeredSsrcs: new Set(),
      applying: [],
    };
  }

  #fail(reason: string): void {
    this.#membership.cycles.close();
    this.#phase = 'failed';
    this.#act({ type: 'fail', reason });
  }

  /** Logs ignored events 1, 2, 4, 8 and so on: a client can send garbage at any rate. */
  #ignore(reason: string): void {
    this.#ignored += 1;
    if (!isPowerOfTwo(this.#ignored)) return;
    this.#warn('media_event.ignored', `${reason} (${this.#ignored} ignored so far)`);
  }

  /** Logs offers 1, 2, 4, 8 and so on with tracks that the client may not publish: most clients repeat them. */
  #deny(tracks: number): void {
    this.#denied += 1;
    if (!isPowerOfTwo(this.#denied)) return;
    this.#warn('peer.track_denied', `${tracks} in an offer (${this.#denied} such offers so far)`);
  }

  #warn(event: string, detail: string): void {
    this.#act({ type: 'warn', event, detail });
  }

  #send(text: string): void {
    this.#act({ type: 'send', text });
  }

  #media(command: MediaCommand): void {
    this.#act({ type: 'media', command });
  }

  #act(action: SessionAction): void {
    this.#actions.push(action);
  }
}

function toCredentials(ice: Membership['ice']): { ufrag: string; pwd: string } {
  return { ufrag: ice?.localUfrag ?? '', pwd: ice?.localPwd ?? '' };
}
