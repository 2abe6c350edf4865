// A participant without an SDK: it has a valid token, knows every protocol, and breaks all of them.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { decodePeerMessage, encodePeerMessage } from '@bloom/protocol';
import { createCertificate, type DtlsCertificate } from '@bloom/webrtc';
import { TestClient } from '@bloom/webrtc/testing';
import WebSocket, { type ClientOptions } from 'ws';
import { newCredentials, type OfferedLine, writeOffer } from './offer.js';

const PATIENCE_MS = 10_000;
/** A node that answers no check for this long is refusing newcomers. */
const CHECKS_MS = 5_000;
const RECEIVED_AUDIO: OfferedLine = { kind: 'audio', direction: 'recvonly' };
const RECEIVED_VIDEO: OfferedLine = { kind: 'video', direction: 'recvonly' };

export interface MediaEvent {
  readonly type: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- JSON of the node under test
  readonly data?: any;
}

export interface IntruderOptions {
  readonly url: string;
  readonly token: string;
  /** Options of the websocket, such as the local address. */
  readonly socket?: ClientOptions;
}

export interface Publication {
  readonly lines: readonly OfferedLine[];
  /** Track ids of the sendonly lines, by index. */
  readonly trackIds: ReadonlyMap<number, string>;
  readonly bitrates?: unknown;
  readonly metadata?: unknown;
  /** Changes the offer before it is sent. */
  readonly edit?: (sdp: string) => string;
}

export class Intruder {
  readonly socket: WebSocket;
  /** `<code> <reason>` once the socket is closed. */
  readonly closed: Promise<string>;
  closeReason: string | undefined;
  id = '';
  /** Maximum number of m-lines that one `offerData` has requested from this client. */
  mostAskedFor = 0;
  ice = { localUfrag: '', localPwd: '', remoteUfrag: '', remotePwd: '' };
  answer = '';
  relay: { username: string; password: string; serverPort: number } | undefined;
  #wire: TestClient | undefined;
  #mediaPort = 0;
  #obliging = false;
  #tracksTypes = { audio: 0, video: 0 };
  readonly #received: OfferedLine[] = [];
  /** True while the node waits for an offer that it has requested. */
  #offerIsDue = false;
  readonly #seen: MediaEvent[] = [];
  readonly #counts = new Map<string, number>();
  readonly #certificate: DtlsCertificate;
  #wake: () => void = () => undefined;

  private constructor(
    readonly options: IntruderOptions,
    certificate: DtlsCertificate,
  ) {
    this.#certificate = certificate;
    this.socket = new WebSocket(`${options.url.replace(/^http/, 'ws')}/socket/peer/websocket`, options.socket);
    this.closed = new Promise((resolve) => {
      this.socket.once('close', (code, reason) => {
        this.closeReason = `${code} ${reason.toString()}`.trim();
        this.#wake();
        resolve(this.closeReason);
      });
    });
    this.socket.on('error', () => undefined);
    this.socket.on('message', (data: Buffer) => this.#take(decodePeerMessage(data, Number.POSITIVE_INFINITY)));
  }

  /** Opens the socket and presents the token. */
  static async authenticated(options: IntruderOptions): Promise<Intruder> {
    const intruder = new Intruder(options, await (certificate ??= createCertificate()));
    await Promise.race([once(intruder.socket, 'open'), intruder.closed]);
    intruder.frame(encodePeerMessage({ type: 'authRequest', token: options.token }));
    await intruder.next('authenticated');
    return intruder;
  }

  /** Opens the socket, presents the token and joins the room. */
  static async joined(options: IntruderOptions, metadata: unknown = { name: 'intruder' }): Promise<Intruder> {
    const intruder = await Intruder.authenticated(options);
    intruder.send('connect', { metadata });
    intruder.id = (await intruder.next('connected')).data.id;
    return intruder;
  }

  get isOpen(): boolean {
    return this.socket.readyState === WebSocket.OPEN;
  }

  /** Sends one media event in its plain form. */
  send(type: string, data?: unknown): void {
    this.text(JSON.stringify({ type, data }));
  }

  /** Sends one media event wrapped in `custom`. */
  custom(type: string, data?: unknown): void {
    this.send('custom', { type, data });
  }

  /** Sends a media event with exactly this text. */
  text(text: string): void {
    this.frame(encodePeerMessage({ type: 'mediaEvent', data: text }));
  }

  frame(bytes: Uint8Array): void {
    if (this.isOpen) this.socket.send(bytes);
  }

  /** Resolves when everything sent so far has left this process, or the socket is closed. */
  async flushed(): Promise<void> {
    while (this.isOpen && this.socket.bufferedAmount > 0) await delay(5);
  }

  /** Resolves with the first event of the type that has not been taken yet. Rejects when the socket closes first. */
  async next(type: string, timeoutMs = PATIENCE_MS): Promise<MediaEvent> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const at = this.#seen.findIndex((event) => event.type === type);
      if (at >= 0) return this.#seen.splice(0, at + 1).at(-1) as MediaEvent;
      if (this.closeReason !== undefined) throw new Error(`closed with '${this.closeReason}' before ${type}`);
      const remaining = deadline - performance.now();
      if (remaining <= 0) throw new Error(`no ${type} within ${timeoutMs} ms`);
      await Promise.race([
        new Promise<void>((resolve) => {
          this.#wake = resolve;
        }),
        delay(remaining, undefined, { ref: false }),
      ]);
    }
  }

  /** Returns the number of events of the type received so far. */
  seen(type: string): number {
    return this.#counts.get(type) ?? 0;
  }

  /** Forgets the events received so far. */
  forget(): void {
    this.#seen.length = 0;
  }

  /** Returns a track id as the SDK would choose it. */
  trackId(): string {
    return `${this.id}:${randomUUID()}`;
  }

  /** Runs one negotiation up to the answer: the one that the others' tracks have begun, if any. */
  async negotiate(publication: Publication): Promise<void> {
    if (!this.#offerIsDue) {
      this.custom('renegotiateTracks');
      await this.next('offerData');
    }
    this.forget();
    this.offer(publication);
    this.#answered((await this.next('sdpAnswer')).data.sdp);
  }

  /** From now on answers all of the node's requests, with media, as an honest client does. */
  oblige(): void {
    this.#obliging = true;
    if (this.#offerIsDue) this.#receiveAll();
  }

  #receiveAll(): void {
    const { audio, video } = this.#tracksTypes;
    while (this.#received.filter(({ kind }) => kind === 'audio').length < audio) this.#received.push(RECEIVED_AUDIO);
    while (this.#received.filter(({ kind }) => kind === 'video').length < video) this.#received.push(RECEIVED_VIDEO);
    this.offer({ lines: this.#received, trackIds: new Map() });
  }

  async #connectOnce(sdp: string): Promise<void> {
    this.#answered(sdp);
    const wire = await this.wire();
    await wire.check(this.ice);
    if (wire.srtp === undefined) await wire.handshake();
  }

  /** Sends an offer without waiting for anything. */
  offer({ lines, trackIds, bitrates, metadata, edit = (sdp) => sdp }: Publication): void {
    this.#offerIsDue = false;
    const { ufrag, pwd } = newCredentials();
    this.ice = { ...this.ice, remoteUfrag: ufrag, remotePwd: pwd };
    const sdp = edit(writeOffer(lines, { ufrag, pwd, fingerprint: this.#certificate.fingerprint.value }));
    const ids = [...trackIds.values()];
    this.custom('sdpOffer', {
      sdpOffer: { type: 'offer', sdp },
      trackIdToTrackMetadata: metadata ?? Object.fromEntries(ids.map((id) => [id, null])),
      trackIdToTrackBitrates: bitrates ?? {},
      midToTrackId: Object.fromEntries([...trackIds].map(([mid, id]) => [String(mid), id])),
    });
  }

  #answered(sdp: string): void {
    this.answer = sdp;
    const value = (name: string): string => new RegExp(`^a=${name}:(.*?)\\r?$`, 'm').exec(sdp)?.[1] ?? '';
    this.ice = { ...this.ice, localUfrag: value('ice-ufrag'), localPwd: value('ice-pwd') };
  }

  /** Returns this client's UDP socket, which the first call opens. Needs the port that the node announced. */
  async wire(): Promise<TestClient> {
    if (this.#mediaPort === 0) await this.next('candidate');
    if (this.#wire === undefined) {
      this.#wire = await TestClient.open({ address: '127.0.0.1', port: this.#mediaPort }, this.#certificate);
      this.#wire.patienceMs = CHECKS_MS;
    }
    return this.#wire;
  }

  /** Runs ICE and DTLS after a `negotiate`. */
  async connectMedia(): Promise<TestClient> {
    const wire = await this.wire();
    await wire.check(this.ice);
    await wire.handshake();
    return wire;
  }

  async leave(): Promise<void> {
    await this.#wire?.close();
    this.#wire = undefined;
    this.socket.terminate();
    await this.closed;
  }

  #take(message: ReturnType<typeof decodePeerMessage>): void {
    if (message.type === 'mediaEvent') {
      const event = JSON.parse(message.data) as MediaEvent;
      const flat: MediaEvent = event.type === 'custom' ? event.data : event;
      this.#observe(flat);
      this.#seen.push(flat);
    } else {
      this.#seen.push({ type: message.type });
    }
    this.#wake();
  }

  #observe({ type, data }: MediaEvent): void {
    this.#counts.set(type, this.seen(type) + 1);
    if (type === 'offerData') {
      this.#offerIsDue = true;
      const { audio = 0, video = 0 } = data.tracksTypes;
      this.#tracksTypes = { audio, video };
      this.mostAskedFor = Math.max(this.mostAskedFor, audio + video);
      this.relay = data.integratedTurnServers[0];
      this.#mediaPort = data.integratedTurnServers[0]?.serverPort ?? 0;
      if (this.#obliging) this.#receiveAll();
    }
    // A negotiation that the room restarts leaves a check unanswered.
    if (type === 'sdpAnswer' && this.#obliging) this.#connectOnce(data.sdp).catch(() => undefined);
  }
}

let certificate: Promise<DtlsCertificate> | undefined;
