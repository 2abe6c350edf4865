/** A session and a client that does exactly what the test says, one message at a time. */
import type {
  Endpoint,
  EndpointTrack,
  PeerSession,
  PeerSessionOptions,
  SessionAction,
  SessionInput,
} from '@bloom/rooms';
import type { MediaCommand, TransportNegotiation } from '@bloom/sfu';
import { createPeerSession } from '../negotiation/session.js';
import { FakeConnection, type FakeTransceiver } from './fake-connection.js';
import { chooser } from './lanes.js';

type Json = Record<string, any>;

const FINGERPRINT = Array.from({ length: 32 }, () => 'AB').join(':');

export function videoTrack(trackId: string, more: Partial<EndpointTrack> = {}): EndpointTrack {
  return { trackId, kind: 'video', codec: 'vp8', metadata: null, encodings: [], disabledEncodings: [], ...more };
}

export function audioTrack(trackId: string, more: Partial<EndpointTrack> = {}): EndpointTrack {
  return { ...videoTrack(trackId), kind: 'audio', codec: 'opus', ...more };
}

export function peerEndpoint(id: string, ...tracks: EndpointTrack[]): Endpoint {
  return { id, type: 'webrtc', metadata: { name: id }, tracks };
}

interface LocalTrack {
  transceiver: FakeTransceiver;
  metadata: unknown;
  bitrates?: unknown;
  /** Left out of the mid map, as newer clients do with muted tracks. */
  unmapped?: boolean;
}

export class ScriptedClient {
  readonly session: PeerSession;
  connection = ScriptedClient.#createConnection();
  readonly local = new Map<string, LocalTrack>();
  /** Edits the text of the next offers. */
  editOffer: (sdp: string) => string = (sdp) => sdp;
  /** Ids of tracks by the m-lines that offer their second encodings. */
  readonly fallbacks = new Map<FakeTransceiver, string>();
  /** Number of receiving m-lines of each kind that the client offers beyond the requested ones. */
  spare = 0;
  #events: Json[] = [];
  #actions: SessionAction[] = [];
  #negotiation: TransportNegotiation | undefined;
  #tracksTypes: Record<string, number> = {};
  #lastOffer = '';

  constructor(options: Partial<PeerSessionOptions> = {}) {
    const choose = chooser(1);
    this.session = createPeerSession({
      peerId: 'me',
      videoCodec: null,
      client: 'sdk',
      enableSimulcast: true,
      publishes: ['audio', 'video'],
      endpoint: { address: '192.0.2.1', port: 50_000, fingerprint: { algorithm: 'sha-256', value: FINGERPRINT } },
      relay: { username: '1:me', password: 'secret' },
      randomBytes: (n) => Uint8Array.from({ length: n }, () => choose(256)),
      ...options,
    });
  }

  /** Connects to a room that the others have already joined. */
  join(...others: Endpoint[]): this {
    return this.joinWith([], ...others);
  }

  /** Connects as a client that supports these additions to the protocol. */
  joinWith(features: readonly string[], ...others: Endpoint[]): this {
    this.event('connect', { metadata: { name: 'me' }, ...(features.length > 0 ? { features } : {}) });
    this.input({ type: 'joined', endpoints: others });
    return this;
  }

  input(input: SessionInput): void {
    for (const action of this.session.handle(input)) {
      if (action.type === 'send') {
        this.#receive(JSON.parse(action.text));
      } else {
        if (action.type === 'negotiate') this.#negotiation = action.negotiation;
        this.#actions.push(action);
      }
    }
  }

  /** Sends an unwrapped media event. */
  event(type: string, data?: unknown): void {
    this.text(JSON.stringify({ type, data }));
  }

  custom(type: string, data?: unknown): void {
    this.event('custom', { type, data });
  }

  text(text: string): void {
    this.input({ type: 'clientEvent', text });
  }

  publish(
    trackId: string,
    kind: 'audio' | 'video',
    more: { rids?: string[]; metadata?: unknown; bitrates?: unknown; stream?: string } = {},
  ): FakeTransceiver {
    const transceiver = this.connection.addTransceiver(
      { id: `local-${trackId}`, kind },
      {
        direction: 'sendonly',
        streams: more.stream === undefined ? [] : [{ id: more.stream }],
        sendEncodings: more.rids?.map((rid) => ({ rid })) ?? [{}],
      },
    );
    this.local.set(trackId, { transceiver, metadata: more.metadata, bitrates: more.bitrates });
    return transceiver;
  }

  /** Adds an m-line that no id of a track names. */
  sendMore(kind: 'audio' | 'video' = 'video', rids: readonly string[] = []): FakeTransceiver {
    const sendEncodings = rids.length === 0 ? [{}] : rids.map((rid) => ({ rid }));
    return this.connection.addTransceiver({ id: 'more', kind }, { direction: 'sendonly', sendEncodings });
  }

  unpublish(trackId: string): void {
    const track = this.local.get(trackId);
    if (track !== undefined) this.connection.removeTrack(track.transceiver.sender);
    this.local.delete(trackId);
  }

  /** Answers `offerData` with an offer that has as many receiving m-lines as requested. */
  async sendOffer(): Promise<void> {
    this.text(await this.makeOffer());
  }

  async makeOffer(): Promise<string> {
    if (this.#lastOffer !== '') this.connection.restartIce();
    for (const kind of ['audio', 'video'] as const) {
      const have = this.connection.transceivers.filter(
        (t) => t.direction === 'recvonly' && t.receiver.track.kind === kind,
      );
      const missing = (this.#tracksTypes[kind] ?? 0) + this.spare - have.length;
      if (missing < 0) throw new RangeError(`${-missing} ${kind} m-lines too many`);
      for (let n = 0; n < missing; n++) this.connection.addTransceiver(kind, { direction: 'recvonly' });
    }
    const offer = await this.connection.createOffer();
    await this.connection.setLocalDescription(offer);
    this.#lastOffer = this.editOffer(offer.sdp);
    const local = [...this.local];
    return JSON.stringify({
      type: 'custom',
      data: {
        type: 'sdpOffer',
        data: {
          sdpOffer: { type: 'offer', sdp: this.#lastOffer },
          trackIdToTrackMetadata: Object.fromEntries(local.map(([trackId, { metadata }]) => [trackId, metadata])),
          trackIdToTrackBitrates: Object.fromEntries(local.map(([trackId, { bitrates }]) => [trackId, bitrates])),
          midToTrackId: Object.fromEntries(
            local
              .filter(([, { unmapped }]) => unmapped !== true)
              .map(([trackId, { transceiver }]) => [transceiver.mid, trackId]),
          ),
          fallbacks: Object.fromEntries([...this.fallbacks].map(([{ mid }, trackId]) => [mid, trackId])),
        },
      },
    });
  }

  get negotiation(): TransportNegotiation {
    if (this.#negotiation === undefined) throw new Error('nothing was negotiated');
    return this.#negotiation;
  }

  /** Reports that the media plane is ready; the client applies the answer. */
  async negotiated(): Promise<void> {
    this.input({ type: 'negotiated', generation: this.negotiation.generation });
    await this.connection.setRemoteDescription({ type: 'answer', sdp: this.answer });
  }

  /** Gives the client time to apply the answer and establishes its connection. */
  connected(): void {
    this.input({ type: 'timer', name: 'apply' });
    this.input({ type: 'iceConnected', peerId: 'me', generation: this.negotiation.generation });
    this.input({ type: 'dtlsConnected', peerId: 'me' });
  }

  /** Runs everything from the offer to ICE. */
  async cycle(): Promise<void> {
    await this.sendOffer();
    await this.negotiated();
    this.connected();
  }

  /** Text of the latest answer. */
  get answer(): string {
    return this.session.descriptions().answer ?? '';
  }

  /** Returns the direction of each m-line in the latest answer. */
  directions(): string[] {
    return [...this.answer.matchAll(/^a=(sendonly|recvonly|inactive)\r$/gm)].map((match) => match[1] ?? '');
  }

  /** Returns the events since the last call. */
  takeEvents(): Json[] {
    return this.#events.splice(0);
  }

  /** Returns the events since the last call in short form: the name, and whom or what each one concerns. */
  heard(): string[] {
    return this.takeEvents().map(inShort);
  }

  /** Returns the actions since the last call except messages and timers. */
  asked(): SessionAction[] {
    return this.#actions.splice(0).filter((action) => action.type !== 'setTimer' && action.type !== 'clearTimer');
  }

  /** Returns the timers set and cleared since the last call of this method or `asked`. */
  timers(): string[] {
    return this.#actions
      .splice(0)
      .flatMap((action) =>
        action.type === 'setTimer'
          ? [`${action.name} ${action.ms}`]
          : action.type === 'clearTimer'
            ? [`no ${action.name}`]
            : [],
      );
  }

  #receive(event: Json): void {
    const flat = event['type'] === 'custom' ? event['data'] : event;
    if (flat.type === 'offerData') this.#tracksTypes = flat.data.tracksTypes;
    this.#events.push(flat);
  }

  static #createConnection(): FakeConnection {
    return new FakeConnection({ defer: () => Promise.resolve(), onAnswered: () => undefined });
  }
}

function inShort({ type, data }: Json): string {
  switch (type) {
    case 'offerData':
      return `offerData audio ${data.tracksTypes.audio} video ${data.tracksTypes.video}`;
    case 'tracksAdded':
      return `tracksAdded ${data.endpointId}: ${Object.keys(data.tracks).join(' ')}`;
    case 'tracksRemoved':
      return `tracksRemoved ${data.endpointId}: ${data.trackIds.join(' ')}`;
    case 'sdpAnswer':
      return `sdpAnswer ${JSON.stringify(data.midToTrackId)}`;
    case 'trackUpdated':
      return `trackUpdated ${data.trackId} ${JSON.stringify(data.metadata)}`;
    case 'trackEncodingEnabled':
    case 'trackEncodingDisabled':
      return `${type} ${data.trackId} ${data.encoding}`;
    case 'endpointAdded':
    case 'endpointUpdated':
    case 'endpointRemoved':
      return `${type} ${data.id}`;
    case 'encodingSwitched':
    case 'vadNotification':
      return `${type} ${data.trackId} ${data.encoding ?? data.status}`;
    case 'trackMuted':
      return `trackMuted ${data.trackId} ${data.muted} by ${data.by}`;
    case 'trackStalled':
      return `trackStalled ${data.trackId} ${data.stalled}`;
    case 'trackUnavailable':
      return `trackUnavailable ${data.trackId} ${data.reason}`;
    case 'permissions':
      return ['permissions', data.publish.join(','), ...['subscribe', 'metadata'].filter((name) => data[name])].join(
        ' ',
      );
    default:
      return type;
  }
}

export function media(command: MediaCommand): SessionAction {
  return { type: 'media', command };
}
