/** A scripted LiveKit client: what it offers, and what its session sends to it. */
import { createHash } from 'node:crypto';
import { SignalRequest, SignalResponse } from '@livekit/protocol';
import type { Endpoint, EndpointTrack, SessionAction, SessionInput } from '@bloom/rooms';
import { createLivekitSession } from '../session/session.js';
import { type FromSession, readFromSession, toSession, type JoinMessage } from '../session/session-message.js';

export type Sent = SignalResponse['message'];
export type CaseOf<C> = Extract<Sent, { case: C }>;

export interface Line {
  kind: 'audio' | 'video';
  direction: 'sendonly' | 'recvonly' | 'sendrecv' | 'inactive';
  /** Default: its position in the offer. */
  mid?: string;
  /** Second part of `a=msid`. */
  cid?: string;
  rids?: readonly string[];
  codecs?: readonly string[];
}

const CODECS = { audio: ['opus/48000/2'], video: ['VP8/90000'] } as const;
const H264_PARAMETERS = 'level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f';
const FINGERPRINT = Array.from({ length: 32 }, () => 'AB').join(':');

function section({ kind, direction, mid, cid, rids = [], codecs = CODECS[kind] }: Line, at: number): string[] {
  return [
    `m=${kind} 9 UDP/TLS/RTP/SAVPF ${codecs.map((_, i) => 96 + i).join(' ')}`,
    'c=IN IP4 0.0.0.0',
    'a=ice-ufrag:abcd',
    'a=ice-pwd:0123456789012345678901',
    `a=fingerprint:sha-256 ${FINGERPRINT}`,
    'a=setup:actpass',
    `a=mid:${mid ?? at}`,
    'a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid',
    'a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id',
    `a=${direction}`,
    ...(cid === undefined ? [] : [`a=msid:stream ${cid}`]),
    ...codecs.map((codec, i) => `a=rtpmap:${96 + i} ${codec}`),
    ...codecs.flatMap((codec, i) => (codec === 'H264/90000' ? `a=fmtp:${96 + i} ${H264_PARAMETERS}` : [])),
    ...rids.map((rid) => `a=rid:${rid} send`),
    ...(rids.length === 0 ? [] : [`a=simulcast:send ${rids.join(';')}`]),
  ];
}

function offerOf(lines: readonly Line[]): string {
  const mids = lines.map(({ mid }, at) => mid ?? at).join(' ');
  const head = ['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 't=0 0', `a=group:BUNDLE ${mids}`];

  return `${[...head, ...lines.flatMap(section)].join('\r\n')}\r\n`;
}

/** Returns a participant of this face, as the room announces it. */
export function native(identity: string, tracks: readonly EndpointTrack[] = [], id = `peer-${identity}`): Endpoint {
  const server = { identity, name: identity, kind: 'standard', metadata: '', attributes: {}, joinedAt: 1 };

  return { id, type: 'webrtc', metadata: { peer: null, server }, tracks };
}

export function track(
  trackId: string,
  kind: 'audio' | 'video' = 'video',
  more: Partial<EndpointTrack> = {},
): EndpointTrack {
  const codec = kind === 'audio' ? 'opus' : 'vp8';

  return { trackId, kind, codec, metadata: null, encodings: [], disabledEncodings: [], ...more };
}

export class ScriptedClient {
  /** Actions of the session other than texts for its client. */
  asked: SessionAction[] = [];
  /** Frames that the client has received. */
  frames: Sent[] = [];
  /** What the holder of the websocket has received, besides frames. */
  told: FromSession[] = [];
  readonly #session;
  #drawn = 0;
  #offers = 0;

  constructor() {
    this.#session = createLivekitSession({
      peerId: 'me',
      client: 'livekit',
      videoCodec: null,
      enableSimulcast: true,
      publishes: ['audio', 'video'],
      endpoint: { address: '192.0.2.1', port: 1, fingerprint: { algorithm: 'sha-256', value: FINGERPRINT } },
      relay: { username: 'u', password: 'p' },
      randomBytes: (n) =>
        createHash('sha512')
          .update(String(this.#drawn++))
          .digest()
          .subarray(0, n),
    });
  }

  join(present: readonly Endpoint[] = [], change: Partial<JoinMessage> = {}): this {
    const grants = {
      canPublish: true,
      canSubscribe: true,
      canPublishData: true,
      canPublishSources: [],
      canUpdateOwnMetadata: true,
      hidden: false,
    };
    const record = {
      identity: 'ann',
      name: 'Ann',
      kind: 'standard',
      metadata: '',
      attributes: {},
      joinedAt: 5,
    } as const;
    const room = { sid: 'RM_1', name: 'r', createdAt: 1, metadata: '', maxParticipants: 0, departureTimeout: 20 };
    const message = {
      record,
      grants,
      room,
      protocol: 17,
      autoSubscribe: true,
      issuer: 'k',
      nodeId: 'n',
      release: '1',
      requests: [],
    };
    this.input({ type: 'clientEvent', text: toSession.join({ ...message, ...change }) });

    return this.input({ type: 'joined', endpoints: present });
  }

  input(input: SessionInput): this {
    for (const action of this.#session.handle(input)) {
      if (action.type !== 'send') {
        this.asked.push(action);
        continue;
      }
      const message = readFromSession(action.text);
      if (message.type === 'frame') this.frames.push(SignalResponse.fromBinary(message.bytes).message);
      else this.told.push(message);
    }

    return this;
  }

  request(message: SignalRequest['message']): this {
    return this.input({ type: 'clientEvent', text: toSession.request(new SignalRequest({ message }).toBinary()) });
  }

  /** Sends an offer, and lets the media plane apply it. */
  offer(lines: readonly Line[]): this {
    this.offerOnly(lines);

    return this.input({ type: 'negotiated', generation: this.#offers });
  }

  offerOnly(lines: readonly Line[]): this {
    this.#offers += 1;
    const value = { type: 'offer', sdp: offerOf(lines), id: this.#offers };

    return this.request({ case: 'offer', value: value as never });
  }

  /** Returns the frames of one kind since the last call, and forgets all. */
  heard<C extends Sent['case']>(which: C): CaseOf<C>['value'][] {
    const frames = this.frames.filter((frame) => frame.case === which).map(({ value }) => value);
    this.frames = [];

    return frames as CaseOf<C>['value'][];
  }

  /** Returns the actions of one type since the last call, and forgets all. */
  took<T extends SessionAction['type']>(type: T): Extract<SessionAction, { type: T }>[] {
    const actions = this.asked.filter((action) => action.type === type);
    this.asked = [];

    return actions as Extract<SessionAction, { type: T }>[];
  }
}

/** Returns the direction of each m-line of an answer. */
export function directions(sdp: string): string[] {
  return sdp.split('\r\n').flatMap((line) => /^a=(sendonly|recvonly|inactive)$/.exec(line)?.[1] ?? []);
}
