import {
  peerRelay,
  type CreatePeerSession,
  type PeerSession,
  type PeerSessionOptions,
  type SessionAction,
  type SessionInput,
} from '@bloom/rooms';
import { Identifiers } from '@bloom/negotiation';
import { type SdpOffer, writeAnswer } from '@bloom/webrtc';
import { WhipError } from './errors.js';
import { acceptOffer } from './offer.js';
import { Publisher } from './publisher.js';
import type { Role } from './role.js';
import { writeFragment } from './sdp-fragment.js';
import type { SessionAnswer, SessionRequest, SessionRole } from './session-message.js';
import { Viewer } from './viewer.js';

/**
 * Creates the sans-IO machine that serves one WHIP or WHEP client. `session-message` defines its requests and answers.
 */
export const createHttpSession: CreatePeerSession = (options) => new HttpSession(options);

interface OpenSession {
  offer: SdpOffer;
  wanted: SessionRole;
  sdpSessionId: string;
  ice: { localUfrag: string; localPwd: string; remoteUfrag: string; remotePwd: string };
  /** Number of the current ICE credentials; serves as the entity tag. */
  iceGeneration: number;
  /** Undefined until the room has admitted the client. */
  role: Role | undefined;
}

/** Minimum time between two ICE restarts, each of which costs the media worker of the whole room. */
const RESTART_PAUSE_MS = 1_000;

class HttpSession implements PeerSession {
  readonly #options: PeerSessionOptions;
  readonly #identifiers: Identifiers;
  #publishes: PeerSessionOptions['publishes'];
  #open: OpenSession | undefined;
  #generation = 0;
  /** True for a while after an ICE restart. */
  #restarted = false;
  /**
   * Answers in the order of the requests. An answer with a generation waits for the media plane, and later ones wait
   * for it.
   */
  #answers: { generation?: number; make: () => SessionAnswer }[] = [];
  #actions: SessionAction[] = [];
  #descriptions: { offer?: string; answer?: string } = {};

  constructor(options: PeerSessionOptions) {
    this.#options = options;
    this.#publishes = options.publishes;
    this.#identifiers = new Identifiers(options.randomBytes);
  }

  handle(input: SessionInput): readonly SessionAction[] {
    this.#actions = [];
    this.#handle(input);
    return this.#actions;
  }

  descriptions(): { offer?: string; answer?: string } {
    return this.#descriptions;
  }

  #handle(input: SessionInput): void {
    switch (input.type) {
      case 'clientEvent':
        return this.#request(JSON.parse(input.text) as SessionRequest);
      case 'joined':
        return this.#joined(input);
      case 'negotiated': {
        const answer = this.#answers.find(({ generation }) => generation === input.generation);
        if (answer === undefined) return undefined;
        delete answer.generation;
        return this.#sendAnswers();
      }
      case 'timer':
        if (input.name !== 'restart') break;
        this.#restarted = false;
        return undefined;
      case 'setPublishes':
        this.#publishes = input.kinds;
        break;
    }
    if (this.#open?.role?.handle(input) === true) this.#negotiate(this.#open, this.#open.role);
  }

  #request(request: SessionRequest): void {
    if (request.type === 'offer') return this.#offer(request.sdp, request.role);

    return this.#update(request);
  }

  #offer(sdp: string, wanted: SessionRole): void {
    this.#descriptions = { offer: sdp };
    try {
      const offer = acceptOffer(sdp, wanted.type, this.#options);
      const { iceUfrag: remoteUfrag, icePwd: remotePwd } = offer.transport;
      this.#open = {
        offer,
        wanted,
        sdpSessionId: this.#identifiers.sessionId(),
        ice: { ...this.#newCredentials(), remoteUfrag, remotePwd },
        iceGeneration: 1,
        role: undefined,
      };
    } catch (error) {
      if (!(error instanceof WhipError)) throw error;
      const code = error.code === 'NO_CODEC' ? 'NO_CODEC' : 'INVALID_OFFER';
      return this.#answer({ type: 'refused', code, reason: error.message });
    }
    const kind = wanted.type === 'watch' ? { client: 'whep', hidden: true } : { client: 'whip' };
    return this.#act({ type: 'join', metadata: null, ...kind });
  }

  #joined({ endpoints: present, speaking }: SessionInput & { type: 'joined' }): void {
    const open = this.#open;
    if (open === undefined || open.role !== undefined) return;
    const { offer, wanted } = open;
    const options = { ...this.#options, publishes: this.#publishes };
    const role =
      wanted.type === 'publish'
        ? new Publisher(offer, options, this.#identifiers)
        : new Viewer({ offer, source: wanted.source, present, speaking }, options, this.#identifiers);
    open.role = role;
    this.#negotiate(open, role, () => this.#firstAnswer(open, role));
  }

  #update({ etag, ice }: SessionRequest & { type: 'update' }): void {
    const open = this.#open;
    const role = open?.role;
    if (open === undefined || role === undefined) return this.#answer({ type: 'stale', etag: '' });
    const current = String(open.iceGeneration);
    if (etag !== null && etag !== current) return this.#answer({ type: 'stale', etag: current });
    const unchanged = ice === null || (ice.ufrag === open.ice.remoteUfrag && ice.pwd === open.ice.remotePwd);
    if (unchanged) return this.#answer({ type: 'unchanged' });

    if (this.#restarted) return this.#answer({ type: 'tooManyRestarts' });
    this.#restarted = true;
    this.#act({ type: 'setTimer', name: 'restart', ms: RESTART_PAUSE_MS });
    // RFC 8445, section 9: new credentials from the client mean a restart, which requires new ones from us.
    open.ice = { ...this.#newCredentials(), remoteUfrag: ice.ufrag, remotePwd: ice.pwd };
    open.iceGeneration += 1;
    return this.#negotiate(open, role, () => restarted(open, this.#options.endpoint));
  }

  /** Passes the current state to the media plane; `answer` is sent once it has been applied. */
  #negotiate(open: OpenSession, role: Role, answer?: () => SessionAnswer): void {
    const { inbound, outbound, requests, targets, lacking, holdMs } = role.negotiate();
    this.#generation += 1;
    const generation = this.#generation;
    if (answer !== undefined) this.#answers.push({ generation, make: answer });
    const { peerId } = this.#options;
    for (const target of targets)
      this.#act({ type: 'media', command: { type: 'setTargetVariant', peerId, ...target } });
    const { fingerprint } = open.offer.transport;
    this.#act({ type: 'negotiate', negotiation: { generation, ice: open.ice, fingerprint, inbound, outbound } });
    // The media plane comes first: no track may be announced before it knows the track.
    for (const request of requests) this.#act(request);
    for (const { trackId, codec, encrypted } of lacking) {
      if (encrypted === true) {
        const detail = `track ${trackId} is encrypted; the client does not decrypt`;
        this.#act({ type: 'warn', event: 'peer.no_key', detail });
      } else {
        const detail = `track ${trackId} is sent in ${codec}, which the client does not offer`;
        this.#act({ type: 'warn', event: 'peer.no_codec', detail });
      }
    }
    if (holdMs > 0) this.#act({ type: 'setTimer', name: 'hold', ms: holdMs });
  }

  #firstAnswer({ offer, sdpSessionId, ice, iceGeneration }: OpenSession, role: Role): SessionAnswer {
    const { endpoint, relay } = this.#options;
    const sdp = writeAnswer({
      offer,
      sessionId: sdpSessionId,
      version: 1,
      ice: { ufrag: ice.localUfrag, pwd: ice.localPwd },
      fingerprint: endpoint.fingerprint,
      candidate: endpoint,
      media: role.answer(),
    });
    this.#descriptions = { ...this.#descriptions, answer: sdp };

    return { type: 'answer', sdp, etag: String(iceGeneration), iceServer: peerRelay(endpoint, relay) };
  }

  #newCredentials(): { localUfrag: string; localPwd: string } {
    const { ufrag, pwd } = this.#identifiers.iceCredentials();

    return { localUfrag: ufrag, localPwd: pwd };
  }

  #answer(answer: SessionAnswer): void {
    this.#answers.push({ make: () => answer });
    this.#sendAnswers();
  }

  #sendAnswers(): void {
    const waits = this.#answers.findIndex(({ generation }) => generation !== undefined);
    for (const { make } of this.#answers.splice(0, waits < 0 ? this.#answers.length : waits)) {
      this.#act({ type: 'send', text: JSON.stringify(make()) });
    }
  }

  #act(action: SessionAction): void {
    this.#actions.push(action);
  }
}

function restarted(
  { offer, ice, iceGeneration }: OpenSession,
  endpoint: PeerSessionOptions['endpoint'],
): SessionAnswer {
  const bundled = offer.media.filter(({ refused }) => !refused);
  const fragment = writeFragment({
    ice: { ufrag: ice.localUfrag, pwd: ice.localPwd },
    endpoint,
    media: bundled[0]!,
    mids: bundled.map(({ mid }) => mid),
  });

  return { type: 'restarted', fragment, etag: String(iceGeneration) };
}
