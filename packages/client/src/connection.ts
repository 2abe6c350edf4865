import type { FrameEncryption } from './client-types.js';
import { RoomClientError, throwLater } from './errors.js';
import { type LocalTrack, preferCodec, requestCodec } from './local-track.js';
import { IDLE, type MediaState, pathOf, problemOf, REASONS } from './media-state.js';
import { PathWatch } from './path-watch.js';
import type { Unavailable } from './remote.js';
import type { FallbackWanted, OfferData, TurnServer } from './signaling.js';

export interface ConnectionHooks {
  /** Sends a media engine event. */
  send(type: 'renegotiateTracks' | 'sdpOffer', data?: object): void;
  received(trackId: string, media: MediaStreamTrack): void;
  /** The media of a track can be decrypted, or no longer. */
  undecodable(trackId: string, problem: Unavailable | null): void;
  /** The browser cannot send this track, or the server does not forward it, or no longer. */
  refused(track: LocalTrack): void;
  /** The server has opened a channel. */
  channelOpened(channel: RTCDataChannel): void;
  /** The path to the server has failed or is silent. */
  lost(): void;
  mediaChanged(state: MediaState): void;
}

/** What the server has said in `connected`. */
interface Session {
  selfId: string;
  /** Protocol additions that the server supports too. */
  features: readonly string[];
}

interface Publication {
  readonly track: LocalTrack;
  readonly id: string;
  /** Transceivers of its first and second encoding. */
  readonly transceivers: readonly RTCRtpTransceiver[];
  readonly resolve: () => void;
  readonly reject: (error: RoomClientError) => void;
  accepted: boolean;
}

interface Deferred {
  readonly track: LocalTrack;
  readonly resolve: () => void;
  readonly reject: (error: RoomClientError) => void;
}

const CONFIGURATION: RTCConfiguration = { bundlePolicy: 'max-bundle' };

/**
 * The media of one session. The server requests offers and this side makes them, one at a time. The WebRTC connection
 * is created early, so that its certificate is ready for the first offer.
 */
export class MediaConnection {
  hooks: ConnectionHooks;
  readonly #session: () => Session;
  readonly #encryption: FrameEncryption | undefined;
  readonly #connection: RTCPeerConnection;
  readonly #publications = new Map<LocalTrack, Publication>();
  #waiting: Deferred[] = [];
  #midToTrackId: Readonly<Record<string, string>> = {};
  #queue: Promise<void> = Promise.resolve();
  #configured = false;
  #hasChannels = false;
  #requested = false;
  #restart = false;
  #closed = false;
  #relayErrors = 0;
  readonly #path = new PathWatch({
    changed: (state) => this.hooks.mediaChanged(state),
    restart: () => this.hooks.lost(),
    explain: (state) => this.#explain(state),
  });

  constructor(hooks: ConnectionHooks, session: () => Session, encryption?: FrameEncryption) {
    this.hooks = hooks;
    this.#session = session;
    this.#encryption = encryption;
    const report: Parameters<FrameEncryption['open']>[1] = (mid, problem) =>
      this.hooks.undecodable(this.#midToTrackId[mid] ?? '', problem);
    this.#connection =
      encryption === undefined ? new RTCPeerConnection(CONFIGURATION) : encryption.open(CONFIGURATION, report);
    this.#connection.addEventListener('track', ({ transceiver, track }) => {
      const trackId = this.#midToTrackId[transceiver.mid ?? ''];
      if (trackId !== undefined) this.hooks.received(trackId, track);
    });
    this.#connection.addEventListener('datachannel', ({ channel }) => this.hooks.channelOpened(channel));
    this.#connection.addEventListener('connectionstatechange', () =>
      this.#path.connectionChanged(this.#connection.connectionState),
    );
    // 701: the relay cannot be reached at all.
    this.#connection.addEventListener('icecandidateerror', ({ errorCode }) => {
      if (errorCode < 700) this.#relayErrors += 1;
    });
  }

  get stats(): Promise<RTCStatsReport> {
    return this.#connection.getStats();
  }

  /** Returns the id of the track whose media the m-line `mid` carries, and the m-line of its second encoding. */
  trackOf(mid: string): [id: string | undefined, second: string | null | undefined] {
    const own = [...this.#publications.values()].find(({ transceivers }) => transceivers[0]!.mid === mid);
    return [this.#midToTrackId[mid], own?.transceivers[1]?.mid];
  }

  /** Publishes a track. Resolves when the server has accepted it. */
  publish(track: LocalTrack): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ track, resolve, reject });
      this.#request();
    });
  }

  unpublish(track: LocalTrack): void {
    const publication = this.#publications.get(track);
    for (const one of this.#waiting) if (one.track === track) one.reject(left());
    this.#waiting = this.#waiting.filter((one) => one.track !== track);
    if (publication === undefined) return;
    this.#publications.delete(track);
    publication.reject(left());
    track.unbind(publication.transceivers);
    for (const { sender } of publication.transceivers) this.#connection.removeTrack(sender);
    this.#request();
  }

  /**
   * Opens a data channel. Only the first one needs an offer, whose m-line then serves all channels.
   * @throws RoomClientError DATA_REFUSED after their association has ended: the browser would never open the channel
   */
  openChannel(label: string, options: RTCDataChannelInit): RTCDataChannel {
    if (this.#connection.sctp?.state === 'closed') {
      throw new RoomClientError('DATA_REFUSED', 'its data channels have ended');
    }
    const channel = this.#connection.createDataChannel(label, options);
    if (!this.#hasChannels) this.#request();
    this.#hasChannels = true;
    return channel;
  }

  /** Looks for a new path after the network changed or the old path fell silent. */
  restart(): void {
    this.#restart = true;
    this.#requested = false;
    this.#request();
  }

  /** Handles the server's request for an offer. */
  offerData(data: OfferData): void {
    this.#enqueue(() => this.#offer(data));
  }

  answer(sdp: string, midToTrackId: Readonly<Record<string, string>>): void {
    this.#enqueue(async () => {
      this.#midToTrackId = midToTrackId;
      await this.#connection.setRemoteDescription({ type: 'answer', sdp });
      this.#path.answered(this.#carriesMedia);
      for (const publication of this.#publications.values()) this.#settle(publication);
    });
  }

  candidate(candidate: RTCIceCandidateInit): void {
    this.#enqueue(() => this.#connection.addIceCandidate(candidate));
  }

  /** Sends the second encoding of a track, or no longer. */
  fallbackWanted({ trackId, wanted }: FallbackWanted): void {
    for (const { id, transceivers } of this.#publications.values()) {
      for (const { sender } of id === trackId ? transceivers.slice(1) : []) {
        const parameters = sender.getParameters();
        for (const encoding of parameters.encodings) encoding.active = wanted;
        // A connection that closes meanwhile refuses them.
        sender.setParameters(parameters).catch(() => undefined);
      }
    }
  }

  close(): void {
    this.#closed = true;
    this.#path.close();
    for (const { reject } of this.#waiting) reject(left());
    for (const { track, transceivers, reject } of this.#publications.values()) {
      track.unbind(transceivers);
      reject(left());
    }
    this.#connection.close();
  }

  /** True if the last answer left something to send or receive. */
  get #carriesMedia(): boolean {
    const all = this.#connection.getTransceivers();
    return this.#hasChannels || all.some(({ currentDirection }) => (currentDirection ?? 'inactive') !== 'inactive');
  }

  #request(): void {
    if (this.#requested) return;
    this.#requested = true;
    this.hooks.send('renegotiateTracks');
  }

  async #offer({ tracksTypes, integratedTurnServers }: OfferData): Promise<void> {
    const connection = this.#connection;
    this.#requested = false;
    if (!this.#configured) {
      // The UDP relay has the same address as the direct path, so it does not help if that address is blocked. Chromium
      // also routes all datagrams from a relay's address to the relay: the direct path would never come up.
      const iceServers = integratedTurnServers.filter(({ transport }) => transport !== 'udp').map(iceServerOf);
      connection.setConfiguration({ ...CONFIGURATION, iceServers });
      this.#configured = true;
    }
    // The server has given up on an offer that was never answered.
    if (connection.signalingState === 'have-local-offer') await connection.setLocalDescription({ type: 'rollback' });

    await this.#addWaiting();
    for (const kind of ['audio', 'video'] as const) {
      const receivers = connection
        .getTransceivers()
        .filter(({ direction, receiver }) => direction === 'recvonly' && receiver.track.kind === kind);
      for (let missing = (tracksTypes[kind] ?? 0) - receivers.length; missing > 0; missing -= 1) {
        offerLayers(connection.addTransceiver(kind, { direction: 'recvonly' }));
      }
    }

    // Browsers do not apply an offer without m-lines, which a check of the path may ask for in an empty room.
    if (connection.getTransceivers().length === 0 && !this.#hasChannels) {
      connection.addTransceiver('audio', { direction: 'recvonly' });
    }

    // Redundant sound (RFC 2198): its first place is a request to the server.
    for (const transceiver of connection.getTransceivers()) preferCodec(transceiver, 'audio/red', 'audio/');

    const iceRestart = this.#restart;
    this.#restart = false;
    await connection.setLocalDescription(await connection.createOffer({ iceRestart }));
    const published = [...this.#publications.values()];
    /** Returns the track ids by the m-lines of their first or second encodings. */
    const tracksOf = (place: number): object =>
      Object.fromEntries(
        published.flatMap(({ id, transceivers }) => transceivers.slice(place, place + 1).map(({ mid }) => [mid, id])),
      );
    this.hooks.send('sdpOffer', {
      sdpOffer: { type: 'offer', sdp: connection.localDescription?.sdp },
      trackIdToTrackMetadata: Object.fromEntries(published.map(({ id, track }) => [id, track.metadata])),
      trackIdToTrackBitrates: Object.fromEntries(published.map(({ id, track }) => [id, track.bitratesBps])),
      midToTrackId: tracksOf(0),
      fallbacks: tracksOf(1),
      encrypted: this.#encryption !== undefined,
    });
  }

  async #addWaiting(): Promise<void> {
    // Add them one by one: the later ones may be unpublished in the meantime.
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const { track } = next;
      const { selfId, features } = this.#session();
      // A second connection publishes it under the same id.
      const id = track.id ?? `${selfId}:${uniqueName()}`;
      const transceivers: RTCRtpTransceiver[] = [];
      this.#publications.set(track, { ...next, id, transceivers, accepted: false });
      try {
        for (const codec of track.codecs.slice(0, features.includes('fallback') ? 2 : 1)) {
          const init = track.init(codec, transceivers.length);
          const added = this.#connection.addTransceiver(track.media ?? track.kind, init);
          transceivers.push(added);
          offerLayers(added);
          if (features.includes('codecs')) requestCodec(added, codec);
        }
        if (transceivers.length === 0) throw new TypeError('no codecs');
        await track.bind(id, transceivers);
      } catch (error) {
        if (this.#closed) throw error;
        this.#refuse(next, `the browser does not send ${track.kind} with these options: ${error}`);
      }
    }
  }

  #refuse({ track, reject }: Deferred, message: string): void {
    reject(new RoomClientError('PUBLISH_REFUSED', message));
    this.hooks.refused(track);
  }

  #settle(publication: Publication): void {
    const { track, transceivers, accepted, resolve } = publication;
    if (transceivers[0]!.currentDirection !== 'sendonly') {
      const message = `the server accepts no ${track.kind} from this peer, or not with these options`;
      return this.#refuse(publication, message);
    }
    if (accepted) return undefined;
    publication.accepted = true;
    track.announced();
    return resolve();
  }

  async #explain(state: 'connected' | 'failed'): Promise<MediaState> {
    const stats = await this.#connection.getStats();
    if (state === 'connected') return { ...IDLE, state, path: pathOf(stats) };
    const ice = this.#connection.iceConnectionState;
    const problem = problemOf(stats, { ice, relayErrors: this.#relayErrors });
    return { ...IDLE, state, problem, reason: REASONS[problem ?? 'UNKNOWN'] };
  }

  /**
   * Runs the negotiation steps one after another. A failed step does not stop the next: the server will request another
   * offer.
   */
  #enqueue(step: () => Promise<void>): void {
    this.#queue = this.#queue
      .then(() => (this.#closed ? undefined : step()))
      .catch((error: unknown) => {
        if (!this.#closed) throwLater(error);
      });
  }
}

function iceServerOf({ serverAddr, serverPort, transport, username, password }: TurnServer): RTCIceServer {
  // Servers write IPv6 in brackets; earlier ones did not.
  const address = /^[^[].*:/.test(serverAddr) ? `[${serverAddr}]` : serverAddr;
  const urls =
    transport === 'tls'
      ? `turns:${address}:${serverPort}?transport=tcp`
      : `turn:${address}:${serverPort}?transport=${transport}`;
  return { urls, username, credential: password };
}

/** Unique among a peer's tracks. React Native and pages over plain HTTP lack `crypto.randomUUID`. */
function uniqueName(): string {
  const random = (): string => Math.random().toString(36).slice(2);
  return random() + random();
}

function left(): RoomClientError {
  return new RoomClientError('LEFT', 'unpublished or disconnected');
}

/** Missing in the types, and in browsers other than Chromium. */
interface NegotiableExtensions {
  getHeaderExtensionsToNegotiate?(): { uri: string; direction: string }[];
  setHeaderExtensionsToNegotiate?(extensions: { uri: string; direction: string }[] | undefined): void;
}

/** Offers the header extension with the layers of AV1, which Chromium offers only on request. */
function offerLayers(transceiver: RTCRtpTransceiver & NegotiableExtensions): void {
  try {
    const all = transceiver.getHeaderExtensionsToNegotiate?.();
    for (const one of all ?? []) if (one.uri.includes('/av1-')) one.direction = transceiver.direction;
    transceiver.setHeaderExtensionsToNegotiate?.(all);
  } catch {
    // They are not offered.
  }
}
