/**
 * The parts of an RTCPeerConnection that the client SDK and its negotiation use: transceivers, offers as text, answers
 * checked as browsers do, track events. No media and no network; the test decides when ICE connects.
 */
import { EXTENSION_URIS } from '@bloom/webrtc';

export type FakeDirection = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';

export interface FakeTrack {
  id: string;
  kind: 'audio' | 'video';
}

interface FakeEncoding {
  rid?: string;
  active?: boolean;
  maxBitrate?: number;
}

interface TransceiverInit {
  direction?: FakeDirection;
  streams?: { id: string }[];
  sendEncodings?: FakeEncoding[];
}

class FakeSender {
  readonly encodings: FakeEncoding[];
  readonly streamId: string | undefined;
  readonly #defer: () => Promise<void>;

  constructor(
    public track: FakeTrack | null,
    { sendEncodings = [{}], streams }: TransceiverInit,
    defer: () => Promise<void>,
  ) {
    this.encodings = sendEncodings;
    this.streamId = streams?.[0]?.id;
    this.#defer = defer;
  }

  getParameters(): { encodings: FakeEncoding[] } {
    return { encodings: this.encodings.map((encoding) => ({ ...encoding })) };
  }

  setParameters(): Promise<void> {
    return this.#defer();
  }

  async replaceTrack(track: FakeTrack | null): Promise<void> {
    await this.#defer();
    this.track = track;
  }
}

export class FakeTransceiver {
  mid: string | null = null;
  currentDirection: FakeDirection | null = null;
  stopped = false;

  constructor(
    readonly sender: FakeSender,
    readonly receiver: { track: FakeTrack },
    public direction: FakeDirection,
  ) {}
}

interface TrackEvent {
  streams: { id: string }[];
  track: FakeTrack;
  transceiver: FakeTransceiver;
}

/** What the test decides about a connection. */
export interface FakeNetwork {
  /** Resolves when an asynchronous operation of the connection may finish. */
  defer: () => Promise<void>;
  /** Reports that an answer was applied; from now on ICE can connect with its credentials. */
  onAnswered: (connection: FakeConnection, serverUfrag: string) => void;
}

let counter = 0;

export class FakeConnection {
  signalingState: 'stable' | 'have-local-offer' | 'closed' = 'stable';
  connectionState = 'new';
  iceConnectionState = 'new';
  iceGatheringState = 'new';
  ontrack: ((event: TrackEvent) => void) | null = null;
  onicecandidate: unknown = null;
  onicecandidateerror: unknown = null;
  onconnectionstatechange: (() => void) | null = null;
  oniceconnectionstatechange: (() => void) | null = null;
  onicegatheringstatechange: (() => void) | null = null;
  onsignalingstatechange: (() => void) | null = null;
  readonly transceivers: FakeTransceiver[] = [];
  /** Credentials of the latest offer that was set, and of its answer. */
  localUfrag = '';
  remoteUfrag = '';
  lastAnswer = '';
  candidates = 0;
  readonly #network: FakeNetwork;
  readonly #id = ++counter;
  #restart = true;
  #offers = 0;
  #pendingUfrag = '';
  #remoteSession: { id: string; version: number } | undefined;
  #pendingLines: { mid: string; direction: FakeDirection }[] = [];

  constructor(network: FakeNetwork) {
    this.#network = network;
  }

  addTransceiver(trackOrKind: FakeTrack | 'audio' | 'video', init: TransceiverInit): FakeTransceiver {
    const track = typeof trackOrKind === 'string' ? null : trackOrKind;
    const kind = typeof trackOrKind === 'string' ? trackOrKind : trackOrKind.kind;
    const transceiver = new FakeTransceiver(
      new FakeSender(track, init, this.#network.defer),
      { track: { id: `remote-${++counter}`, kind } },
      init.direction ?? 'sendrecv',
    );
    this.transceivers.push(transceiver);
    return transceiver;
  }

  getTransceivers(): FakeTransceiver[] {
    return [...this.transceivers];
  }

  getSenders(): FakeSender[] {
    return this.transceivers.map((transceiver) => transceiver.sender);
  }

  removeTrack(sender: FakeSender): void {
    const transceiver = this.transceivers.find((candidate) => candidate.sender === sender);
    if (transceiver === undefined) throw new Error('not a sender of this connection');
    sender.track = null;
    transceiver.direction = transceiver.direction === 'sendrecv' ? 'recvonly' : 'inactive';
  }

  restartIce(): void {
    this.#restart = true;
  }

  async createOffer(): Promise<{ type: 'offer'; sdp: string }> {
    await this.#network.defer();
    if (this.#restart) this.#pendingUfrag = `client${this.#id}x${++this.#offers}`;
    return { type: 'offer', sdp: this.#offerText() };
  }

  async setLocalDescription(description: { sdp: string }): Promise<void> {
    await this.#network.defer();
    if (this.signalingState === 'closed') return;
    this.#restart = false;
    this.localUfrag = /a=ice-ufrag:(.*)\r/.exec(description.sdp)?.[1] ?? '';
    this.#pendingLines = sections(description.sdp).map((section) => ({
      mid: attribute(section, 'mid') ?? '',
      direction: directionOf(section),
    }));
    this.#pendingLines.forEach(({ mid }, index) => {
      const transceiver = this.transceivers[index];
      if (transceiver !== undefined) transceiver.mid = mid;
    });
    this.signalingState = 'have-local-offer';
    this.onsignalingstatechange?.();
  }

  async setRemoteDescription({ type, sdp }: { type: string; sdp: string }): Promise<void> {
    if (type !== 'answer' || this.signalingState !== 'have-local-offer') {
      throw new Error(`${type} in ${this.signalingState}`);
    }
    await this.#network.defer();
    if ((this.signalingState as string) === 'closed') return;
    const tracks = this.#applyAnswer(sdp);
    this.lastAnswer = sdp;
    this.signalingState = 'stable';
    this.onsignalingstatechange?.();
    for (const event of tracks) this.ontrack?.(event);
    this.#network.onAnswered(this, this.remoteUfrag);
  }

  addIceCandidate(candidate: { candidate: string }): Promise<void> {
    if (this.signalingState === 'stable' && this.lastAnswer === '') throw new Error('a candidate before any answer');
    if (!candidate.candidate.startsWith('candidate:1 1 UDP '))
      throw new Error(`not a candidate: ${candidate.candidate}`);
    this.candidates += 1;
    return Promise.resolve();
  }

  /** Reports that the other end was reached with the credentials of the latest answer. */
  connect(): void {
    if (this.signalingState === 'closed') return;
    this.iceConnectionState = 'connected';
    this.connectionState = 'connected';
    this.oniceconnectionstatechange?.();
    this.onconnectionstatechange?.();
  }

  close(): void {
    this.signalingState = 'closed';
    this.connectionState = 'closed';
  }

  #offerText(): string {
    const lines = this.transceivers.map((transceiver, index) => mediaSection(transceiver, index, this.#pendingUfrag));
    const mids = this.transceivers.map((transceiver, index) => transceiver.mid ?? String(index));
    return `v=0\r\no=- ${this.#id} ${this.#offers} IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE ${mids.join(' ')}\r\na=extmap-allow-mixed\r\n${lines.join('')}`;
  }

  /** Throws on what browsers refuse and on violations of the SDK's m-line counting. */
  #applyAnswer(sdp: string): TrackEvent[] {
    const answered = sections(sdp);
    const [, id = '', version = ''] = /^o=- (\d+) (\d+) /m.exec(sdp) ?? [];
    const session = this.#remoteSession;
    if (session !== undefined && (session.id !== id || session.version >= Number(version))) {
      throw new Error(`session ${id} version ${version} after ${session.id} version ${session.version}`);
    }
    this.#remoteSession = { id, version: Number(version) };
    if (answered.length !== this.#pendingLines.length) throw new Error('another number of m-lines than offered');
    const ufrag = attribute(answered[0] ?? '', 'ice-ufrag') ?? '';
    if (ufrag.length < 4 || ufrag === this.remoteUfrag) throw new Error('no new ICE credentials after a restart');
    const bundle = /a=group:BUNDLE (.*)\r/.exec(sdp)?.[1];
    if (bundle !== this.#pendingLines.map(({ mid }) => mid).join(' ')) throw new Error(`bundle of ${bundle}`);

    const events: TrackEvent[] = [];
    const ssrcs = [...sdp.matchAll(/a=ssrc:(\d+) cname/g)].map((match) => match[1]);
    if (new Set(ssrcs).size !== ssrcs.length) throw new Error('an SSRC twice');
    answered.forEach((section, index) => {
      const line = this.#pendingLines[index];
      const transceiver = this.transceivers[index];
      if (line === undefined || transceiver === undefined) throw new Error('no such m-line');
      if (/^m=\w+ 0 /.test(section)) throw new Error(`m-line ${line.mid} was refused`);
      if (attribute(section, 'mid') !== line.mid) throw new Error(`the mid of m-line ${index} changed`);
      if (attribute(section, 'ice-ufrag') !== ufrag) throw new Error('several transports');
      const direction = directionOf(section);
      if (!LEGAL[line.direction].includes(direction)) throw new Error(`${direction} answers ${line.direction}`);
      if (direction === 'sendonly' && !/a=msid:\S+ \S+\r/.test(section)) throw new Error('sendonly without msid');
      if (direction === 'sendonly' && !/a=ssrc:/.test(section)) throw new Error('sendonly without SSRC');
      if (line.direction === 'sendonly') keepEncodings(transceiver.sender.encodings, section);
      const before = transceiver.currentDirection;
      transceiver.currentDirection = MIRRORED[direction];
      if (direction === 'sendonly' && before !== 'recvonly') {
        const streamId = attribute(section, 'msid')?.split(' ')[0] ?? '';
        events.push({ streams: [{ id: streamId }], track: transceiver.receiver.track, transceiver });
      }
    });
    this.remoteUfrag = ufrag;
    return events;
  }
}

const LEGAL: Record<FakeDirection, FakeDirection[]> = {
  sendonly: ['recvonly', 'inactive'],
  recvonly: ['sendonly', 'inactive'],
  inactive: ['inactive'],
  sendrecv: ['sendrecv', 'sendonly', 'recvonly', 'inactive'],
};
const MIRRORED: Record<FakeDirection, FakeDirection> = {
  sendonly: 'recvonly',
  recvonly: 'sendonly',
  inactive: 'inactive',
  sendrecv: 'sendrecv',
};

/** Drops the encodings missing from an answer permanently, except the first (webrtc-pc, section 4.4.1.5). */
function keepEncodings(encodings: FakeEncoding[], answer: string): void {
  const kept = encodings.filter(({ rid }, index) => index === 0 || answer.includes(`a=rid:${rid} recv\r\n`));
  encodings.splice(0, encodings.length, ...kept);
}

function mediaSection(transceiver: FakeTransceiver, index: number, ufrag: string): string {
  const { sender, receiver, direction } = transceiver;
  const { kind } = receiver.track;
  const mid = transceiver.mid ?? String(index);
  const sends = direction === 'sendonly' || direction === 'sendrecv';
  const rids = sender.encodings.flatMap(({ rid }) => (rid === undefined ? [] : [rid]));
  const ssrc = 100_000 + index * 2;
  const codecs =
    kind === 'audio'
      ? ['a=rtpmap:111 opus/48000/2', 'a=rtcp-fb:111 transport-cc', 'a=fmtp:111 minptime=10;useinbandfec=1']
      : [
          'a=rtpmap:96 VP8/90000',
          ...['transport-cc', 'ccm fir', 'nack', 'nack pli'].map((feedback) => `a=rtcp-fb:96 ${feedback}`),
          'a=rtpmap:97 rtx/90000',
          'a=fmtp:97 apt=96',
          'a=rtpmap:108 H264/90000',
          'a=fmtp:108 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f',
        ];
  const lines = [
    `m=${kind} 9 UDP/TLS/RTP/SAVPF ${kind === 'audio' ? '111' : '96 97 108'}`,
    'c=IN IP4 0.0.0.0',
    `a=ice-ufrag:${ufrag}`,
    `a=ice-pwd:${ufrag.padEnd(24, 'p')}`,
    `a=fingerprint:sha-256 ${Array.from({ length: 32 }, () => '0A').join(':')}`,
    'a=setup:actpass',
    `a=mid:${mid}`,
    `a=extmap:4 ${EXTENSION_URIS.mid}`,
    ...(kind === 'audio'
      ? [`a=extmap:1 ${EXTENSION_URIS.audioLevel}`]
      : [`a=extmap:10 ${EXTENSION_URIS.rid}`, `a=extmap:11 ${EXTENSION_URIS.repairedRid}`]),
    `a=${direction}`,
    ...(sends ? [`a=msid:${sender.streamId ?? '-'} ${sender.track?.id ?? 'none'}`] : []),
    'a=rtcp-mux',
    ...codecs,
    ...(sends && rids.length > 0
      ? [...rids.map((rid) => `a=rid:${rid} send`), `a=simulcast:send ${rids.join(';')}`]
      : []),
    ...(sends && rids.length === 0 ? [`a=ssrc:${ssrc} cname:fake`] : []),
  ];
  return `${lines.join('\r\n')}\r\n`;
}

function sections(sdp: string): string[] {
  return sdp.split(/^(?=m=)/m).filter((section) => section.startsWith('m='));
}

function attribute(section: string, name: string): string | undefined {
  return new RegExp(`^a=${name}:(.*)\\r$`, 'm').exec(section)?.[1];
}

function directionOf(section: string): FakeDirection {
  return (/^a=(sendonly|recvonly|inactive|sendrecv)\r$/m.exec(section)?.[1] ?? 'sendrecv') as FakeDirection;
}
