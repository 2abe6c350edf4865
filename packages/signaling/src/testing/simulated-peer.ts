/** One participant: the client SDK with a simulated browser, its session, and everything between them in lanes. */
import type { PeerSession, SessionAction, SessionInput, SessionTimer } from '@bloom/rooms';
import { createPeerSession } from '../negotiation/session.js';
import { createSdkEndpoint, type SdkEndpoint } from './client-sdk.js';
import { FakeConnection, type FakeTrack } from './fake-connection.js';
import type { Lanes } from './lanes.js';
import type { SimulatedRoom } from './simulated-room.js';

export interface SimulatedPeerOptions {
  id: string;
  room: SimulatedRoom;
  lanes: Lanes;
  choose: (count: number) => number;
  /** Reports a violation. */
  complain: (what: string) => void;
}

let trackCounter = 0;
let instanceCounter = 0;

export class SimulatedPeer {
  /** Replaced for each `connect`, as applications do. */
  sdk: SdkEndpoint;
  readonly session: PeerSession;
  /** Resolved additions for which no removal was requested. */
  readonly localTrackIds: string[] = [];
  readonly timers = new Set<SessionTimer>();
  joined = false;
  promisesPending = 0;
  /** True while the websocket is open. */
  attached = true;
  /** True while the client is in the room or joining. */
  present = false;
  readonly #options: SimulatedPeerOptions;
  readonly #lane: string;
  readonly #generations = new Map<string, number>();
  #outbound: string[] = [];
  #dtlsConnected = false;
  /** Count `connect` and `join`: messages sent before the client left must not reach its next membership. */
  #connects = 0;
  #joins = 0;

  constructor(options: SimulatedPeerOptions) {
    this.#options = options;
    this.#lane = `${options.id}.${++instanceCounter}`;
    const { choose } = options;
    this.session = createPeerSession({
      peerId: options.id,
      videoCodec: null,
      client: 'sdk',
      enableSimulcast: true,
      publishes: ['audio', 'video'],
      endpoint: {
        address: '127.0.0.1',
        port: 50_000,
        fingerprint: { algorithm: 'sha-256', value: Array.from({ length: 32 }, () => 'AB').join(':') },
      },
      relay: { username: '1:peer', password: 'secret' },
      randomBytes: (n) => Uint8Array.from({ length: n }, () => choose(256)),
    });
    this.sdk = this.#createSdk();
  }

  connect(metadata: unknown): void {
    this.sdk = this.#createSdk();
    this.joined = false;
    this.present = true;
    this.#connects += 1;
    this.#dtlsConnected = false;
    this.sdk.connect(metadata);
  }

  add(kind: 'audio' | 'video' | 'simulcast'): void {
    const encodings = ['l', 'm', 'h'];
    const simulcast = { enabled: true, activeEncodings: encodings, disabledEncodings: [] };
    const added = this.sdk.addTrack(
      newTrack(kind === 'audio' ? 'audio' : 'video'),
      { id: `stream-${this.#lane}` },
      { n: ++trackCounter },
      ...(kind === 'simulcast' ? [simulcast] : []),
    );
    this.#track(added.then((trackId) => void this.localTrackIds.push(trackId)));
  }

  remove(index: number): void {
    const [trackId] = this.localTrackIds.splice(index % (this.localTrackIds.length || 1), 1);
    if (trackId !== undefined) this.#track(this.sdk.removeTrack(trackId));
  }

  replace(index: number): void {
    const trackId = this.localTrackIds[index % (this.localTrackIds.length || 1)];
    const kind = this.sdk.localTrackIdToTrack.get(trackId ?? '')?.track?.kind;
    if (trackId === undefined || kind === undefined) return;
    this.#track(this.sdk.replaceTrack(trackId, newTrack(kind), { replaced: ++trackCounter }));
  }

  /** Sends `disconnect` and leaves the websocket open; when `lost`, leaves silently. */
  leave(lost: boolean): void {
    if (lost) {
      this.attached = false;
      this.#options.room.leave(this.#options.id);
    } else {
      this.sdk.disconnect();
    }
    this.present = false;
    this.localTrackIds.length = 0;
    this.promisesPending = 0;
  }

  /** Delivers the room's events to this session, in order. */
  readonly tell = (input: SessionInput): void => {
    this.#later('to session', () => this.#handle(input));
  };

  #createSdk(): SdkEndpoint {
    const { id, complain } = this.#options;
    const sdk = createSdkEndpoint({
      connection: () =>
        new FakeConnection({
          defer: () => new Promise((resolve) => this.#later('browser', resolve)),
          onAnswered: (connection, ufrag) => this.#connectIce(connection, ufrag),
        }),
      print: (...values) => {
        // An SDK that has left prints that its connection has gone.
        if (this.present && sdk === this.sdk) complain(`the SDK of ${id} says ${values.map(String).join(' ')}`);
      },
    });
    sdk.on('connected', () => {
      this.joined = true;
    });
    sdk.on('sendMediaEvent', (text: string) =>
      this.#later('to server', () => this.#handle({ type: 'clientEvent', text })),
    );
    return sdk;
  }

  #handle(input: SessionInput): void {
    if (!this.attached) return;
    for (const action of this.session.handle(input)) this.#perform(action);
  }

  #perform(action: SessionAction): void {
    const { id, room, complain } = this.#options;
    switch (action.type) {
      case 'send': {
        const membership = this.#joins;
        return this.#later('to client', () => {
          if (membership === this.#connects) this.#receive(action.text);
        });
      }
      case 'negotiate': {
        const { generation, ice, outbound } = action.negotiation;
        this.#generations.set(ice.localUfrag, generation);
        this.#outbound = outbound.map((slot) => slot.trackId);
        return this.#later('media', () => {
          this.#handle({ type: 'negotiated', generation });
          // Chromium may start the checks of a restart before it has our answer.
          if (this.#dtlsConnected && this.#options.choose(2) === 0)
            this.#handle({ type: 'iceConnected', peerId: this.#options.id, generation });
        });
      }
      case 'fail':
        return complain(`${id} failed: ${action.reason}`);
      case 'setTimer':
        this.timers.add(action.name);
        return undefined;
      case 'clearTimer':
        this.timers.delete(action.name);
        return undefined;
      case 'join':
        this.#joins += 1;
        return this.#later('to room', () => this.attached && room.act(id, action, this.tell));
      default:
        return this.#later('to room', () => this.attached && room.act(id, action, this.tell));
    }
  }

  #receive(text: string): void {
    if (!this.present || !this.attached) return;
    try {
      this.sdk.receiveMediaEvent(text);
    } catch (error) {
      this.#options.complain(`${this.#options.id} throws ${String(error)} on ${text.slice(0, 200)}`);
    }
  }

  #connectIce(connection: FakeConnection, ufrag: string): void {
    const generation = this.#generations.get(ufrag);
    if (generation === undefined) return this.#options.complain(`no negotiation has the ufrag ${ufrag}`);
    // Browsers leave `connected` only during some restarts.
    if (this.#options.choose(4) === 0) connection.iceConnectionState = 'checking';
    this.#later('ice of the client', () => connection.connect());
    const membership = this.#joins;
    return this.#later('media', () => {
      // The transport of an earlier membership is closed.
      if (membership !== this.#joins || membership !== this.#connects) return;
      if (this.timers.delete('apply')) this.#handle({ type: 'timer', name: 'apply' });
      this.#handle({ type: 'iceConnected', peerId: this.#options.id, generation });
      if (!this.#dtlsConnected) this.#handle({ type: 'dtlsConnected', peerId: this.#options.id });
      this.#dtlsConnected = true;
      for (const trackId of this.#outbound) {
        this.#later('media', () =>
          this.#handle({ type: 'encodingSwitched', peerId: this.#options.id, trackId, variant: 'h', reason: 'other' }),
        );
        this.#later('media', () => this.#handle({ type: 'voiceActivity', trackId, status: 'speech' }));
      }
    });
  }

  #track(promise: Promise<unknown>): void {
    this.promisesPending += 1;
    promise.then(
      () => {
        this.promisesPending -= 1;
      },
      (error: unknown) => {
        // The SDK rejects pending operations when the client leaves.
        if (this.present && error !== 'Disconnected')
          this.#options.complain(`${this.#options.id} rejects with ${String(error)}`);
      },
    );
  }

  #later(lane: string, step: () => unknown): void {
    this.#options.lanes.push(`${this.#lane} ${lane}`, step);
  }
}

function newTrack(kind: 'audio' | 'video'): FakeTrack {
  return { id: `local-${++trackCounter}`, kind };
}
