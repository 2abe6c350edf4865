import {
  DisconnectReason,
  LeaveRequest_Action,
  RequestResponse_Reason,
  type SessionDescription,
} from '@livekit/protocol';
import type { Identifiers } from '@bloom/negotiation';
import type { PeerSessionOptions, SessionAction, SessionInput } from '@bloom/rooms';
import { Connection } from './connection.js';
import { Downlink } from './downlink.js';
import type { Participants, RemoteTrack } from './participants.js';
import type { Publishing } from './publishing.js';
import { type Message, refusedTrack, sectionsWanted } from './responses.js';
import type { TrackSettings } from './track-settings.js';

/** How long the client has to answer a request for an offer. */
const ASK_AGAIN_MS = 5_000;
/** How long the client has to answer an offer of the server; then it has given up as well. */
const ANSWER_TIMEOUT_MS = 15_000;

/** Inputs that never change which tracks the client is to receive, though large rooms have many of them. */
const UNRELATED: ReadonlySet<SessionInput['type']> = new Set([
  'dataPacket',
  'layersNeeded',
  'qualitiesChanged',
  'roomMessage',
  'voiceActivity',
]);

export interface NegotiatingParts {
  options: PeerSessionOptions;
  identifiers: Identifiers;
  publishing: Publishing;
  others: Participants;
  settings: TrackSettings;
  isWanted: (track: RemoteTrack) => boolean;
  /** The client's media has been connected. */
  isMediaUp: () => boolean;
  act: (action: SessionAction) => void;
  send: (message: Message) => void;
  leave: (reason: DisconnectReason, action: LeaveRequest_Action) => void;
}

/** What an offer of the client changes in what it publishes. */
export type OfferChanges = Pick<NonNullable<ReturnType<Connection['offer']>>, 'added' | 'removed'> & {
  failed: readonly string[];
};

/**
 * Negotiates with a client. On its first connection the client offers. It receives there too (version 1 of the
 * signalling), or on a second connection, on which the server offers (version 0).
 */
export class Negotiating {
  readonly #parts: NegotiatingParts;
  readonly #connection: Connection;
  /** Present if the client has two connections. */
  #downlink: Downlink | undefined;
  /** The client has not answered a request for an offer, or an offer. */
  #asked = false;
  /** The client has no websocket, so it would receive no offer. */
  #isAway = false;

  constructor(parts: NegotiatingParts) {
    this.#parts = parts;
    this.#connection = new Connection(parts.options, parts);
  }

  /** The client has joined. `twoConnections`: with two connections; `primary`: it waits for the second one first. */
  begin({ twoConnections, primary }: { twoConnections: boolean; primary: boolean }): void {
    if (!twoConnections) return;
    this.#downlink = new Downlink(this.#parts.options, this.#parts);
    if (primary) this.#downlink.open();
  }

  get descriptions(): { offer?: string; answer?: string } {
    const { descriptions } = this.#connection;

    return descriptions.offer === undefined ? (this.#downlink?.descriptions ?? {}) : descriptions;
  }

  /** True while the client receives the track, or is about to. */
  carries(track: RemoteTrack): boolean {
    return (this.#downlink ?? this.#connection).carries(track);
  }

  /** The client has offered a track before it requested it. */
  offerAgain(): void {
    this.#connection.needsOffer = true;
  }

  /** Applies an offer of the client. Undefined if it has to wait, or if the client has to leave because of it. */
  offer(offer: SessionDescription): OfferChanges | undefined {
    const { others, settings, isMediaUp, act, send } = this.#parts;
    if (this.#connection.postpones(offer)) return undefined;
    if (this.#downlink === undefined) this.#answered();
    const outcome = this.#connection.offer(offer, this.#downlink === undefined ? others.tracks() : []);
    if (outcome === undefined) {
      this.#unusable('livekit.offer_invalid', this.#connection.fault);
      return undefined;
    }
    // The media plane comes first: no track may be announced before it knows the track.
    act({ type: 'negotiate', negotiation: outcome.negotiation });
    // Pion takes packets of an unknown SSRC for simulcast, and goes on taking some from the track that the SSRC turns
    // out to be.
    if (isMediaUp()) for (const track of outcome.starting) act({ type: 'media', command: settings.hold(track) });
    for (const { request } of outcome.failed)
      send(refusedTrack(request, RequestResponse_Reason.UNSUPPORTED_TYPE, 'no codec of this track can be used here'));

    return { ...outcome, failed: outcome.failed.map(({ sid }) => sid) };
  }

  /** Applies the client's answer to an offer of the server. */
  answer({ sdp, id }: SessionDescription): void {
    const negotiation = this.#downlink?.answer({ sdp, id });
    if (negotiation === undefined) return undefined;
    this.#answered();
    if (negotiation === 'unusable') return this.#unusable('livekit.answer_invalid', this.#downlink?.fault ?? '');
    return this.#parts.act({ type: 'negotiate', negotiation });
  }

  /**
   * The media plane has applied a negotiation. `announce` makes sure that the client knows all tracks. Returns the
   * offer that has waited for it, to be applied instead of an answer.
   */
  negotiated(generation: number, announce: () => void): SessionDescription | undefined {
    const answer = this.#connection.answer(generation);
    if (answer === undefined) return undefined;
    if (!('description' in answer)) return answer;
    // A client ignores a track of somebody it does not know yet.
    announce();
    this.#parts.send({ case: 'answer', value: answer.description });
    this.#started(answer.started);
    return undefined;
  }

  /** The media plane has applied a negotiation of the second connection. */
  receiverNegotiated(generation: number): void {
    this.#started(this.#downlink?.negotiated(generation) ?? []);
  }

  /** The timer `offer` has ended. */
  late(): void {
    if (this.#asked && this.#downlink !== undefined)
      this.#parts.leave(DisconnectReason.STATE_MISMATCH, LeaveRequest_Action.RECONNECT);
    this.#asked = false;
  }

  /** The client has lost its websocket: it cannot answer until it returns. */
  away(): void {
    this.#isAway = true;
    this.#answered();
  }

  /** The client has returned on another websocket. */
  resume(): void {
    this.#isAway = false;
    this.#downlink?.restart();
    if (this.#downlink !== undefined) this.#answered();
  }

  /**
   * Offers, or requests an offer, when tracks wait for a section, or a section waits to become inactive. `after`: what
   * the session has just handled.
   */
  consider(after: SessionInput): void {
    if (this.#isAway || UNRELATED.has(after.type)) return;
    if (after.type === 'endpointAdded' && after.endpoint.tracks.length === 0) return;
    const { others, act, send } = this.#parts;
    if (this.#downlink !== undefined) {
      const offer = this.#downlink.offer(others.tracks());
      if (offer === undefined) return;
      this.#asked = true;
      send({ case: 'offer', value: offer });
      return act({ type: 'setTimer', name: 'offer', ms: ANSWER_TIMEOUT_MS });
    }
    if (this.#asked || !this.#connection.isIdle) return;
    const { audio, video, needsOffer } = this.#connection.missing(others.tracks());
    if (!needsOffer) return;
    this.#asked = true;
    send(sectionsWanted(audio, video));
    act({ type: 'setTimer', name: 'offer', ms: ASK_AGAIN_MS });
  }

  #answered(): void {
    this.#asked = false;
    this.#parts.act({ type: 'clearTimer', name: 'offer' });
  }

  #started(tracks: readonly RemoteTrack[]): void {
    const { settings, act } = this.#parts;
    for (const track of tracks) for (const command of settings.again(track)) act({ type: 'media', command });
  }

  #unusable(event: string, detail: string): void {
    this.#parts.act({ type: 'warn', event, detail });
    this.#parts.leave(DisconnectReason.STATE_MISMATCH, LeaveRequest_Action.RECONNECT);
  }
}
