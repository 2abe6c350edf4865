import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import {
  AddTrackRequest,
  ClientInfo,
  ConnectionSettings,
  JoinRequest,
  SessionDescription,
  SignalResponse,
  TrackSource,
  TrackType,
  WrappedJoinRequest,
  WrappedJoinRequest_Compression,
} from '@livekit/protocol';
import { silentLog } from '@bloom/log';
import type { RoomService } from '@bloom/rooms';
import { awakeClock } from '@bloom/time';
import { Tokens } from '../tokens.js';
import { LivekitFace } from './livekit-face.js';

const TOKEN_TTL_S = 60;
const CID = 'camera';
const FINGERPRINT = Array.from({ length: 32 }, () => '00').join(':');

/**
 * Returns a function that lets an imaginary livekit-client join a room through the real join path, but without a
 * websocket, so that it is compiled before the first real one comes. It resolves once the client has its answer.
 */
export function imaginaryJoins(rooms: RoomService): (roomId: string, publishes: boolean) => Promise<void> {
  const key = { key: 'warm-up', secret: randomBytes(32).toString('base64') };
  const tokens = new Tokens([key], awakeClock);
  const defaults = { autoCreate: false, emptyTimeout: 0, departureTimeout: 0, maxParticipants: 0, remoteUnmute: false };
  const face = new LivekitFace({ rooms, keys: [key], defaults, log: silentLog, nodeId: 'warm-up', release: '' });
  let joined = 0;

  return async (roomId, publishes) => {
    joined += 1;
    const grants = { video: { roomJoin: true, room: roomId } };
    const parameters = new URLSearchParams({
      access_token: await tokens.sign(key.key, { sub: `client-${joined}`, ...grants }, TOKEN_TTL_S),
      join_request: joinRequest(publishes),
    });
    await new Promise<void>((done, failed) => {
      let isAnswered = false;
      const client = {
        send: (bytes: Uint8Array) => {
          if (isAnswered || SignalResponse.fromBinary(bytes).message.case !== 'answer') return;
          isAnswered = true;
          done();
        },
        close: () => done(),
      };
      face.joinWithout(`/rtc/v1?${parameters.toString()}`, client).catch(failed);
    });
  };
}

function joinRequest(publishes: boolean): string {
  const request = new JoinRequest({
    clientInfo: new ClientInfo({ protocol: 17 }),
    connectionSettings: new ConnectionSettings({ autoSubscribe: true }),
    addTrackRequests: publishes
      ? [new AddTrackRequest({ cid: CID, type: TrackType.VIDEO, source: TrackSource.CAMERA })]
      : [],
    publisherOffer: new SessionDescription({ type: 'offer', sdp: offer(publishes), id: 1 }),
  });
  const wrapped = new WrappedJoinRequest({
    compression: WrappedJoinRequest_Compression.GZIP,
    joinRequest: gzipSync(request.toBinary()),
  });

  return Buffer.from(wrapped.toBinary()).toString('base64url');
}

/** The first offer of livekit-client: channels, three sections of each kind to receive in, and perhaps its camera. */
function offer(publishes: boolean): string {
  const kinds = ['audio', 'audio', 'audio', 'video', 'video', 'video'] as const;
  const sections = [
    data(0),
    ...kinds.map((kind, i) => media(kind, i + 1, ['a=recvonly'])),
    ...(publishes
      ? [media('video', 7, ['a=sendonly', `a=msid:s ${CID}`, 'a=ssrc:1 cname:x', 'a=ssrc:2 cname:x'])]
      : []),
  ];
  const mids = sections.map((_, mid) => mid).join(' ');
  const head = ['v=0', 'o=- 1 2 IN IP4 127.0.0.1', 's=-', 't=0 0', `a=group:BUNDLE ${mids}`, 'a=extmap-allow-mixed'];

  return `${[...head, ...sections.flat()].join('\r\n')}\r\n`;
}

function transport(mid: number): string[] {
  return [
    'c=IN IP4 0.0.0.0',
    'a=ice-ufrag:warm',
    'a=ice-pwd:a-password-of-enough-letters',
    'a=ice-options:trickle',
    `a=fingerprint:sha-256 ${FINGERPRINT}`,
    'a=setup:actpass',
    `a=mid:${mid}`,
  ];
}

function data(mid: number): string[] {
  const channels = ['a=sctp-port:5000', 'a=max-message-size:262144'];

  return ['m=application 9 UDP/DTLS/SCTP webrtc-datachannel', ...transport(mid), ...channels];
}

function media(kind: 'audio' | 'video', mid: number, lines: readonly string[]): string[] {
  const codecs =
    kind === 'audio'
      ? ['a=rtpmap:96 opus/48000/2', 'a=rtcp-fb:96 transport-cc', 'a=fmtp:96 minptime=10;useinbandfec=1']
      : [
          'a=rtpmap:96 VP8/90000',
          ...['goog-remb', 'transport-cc', 'ccm fir', 'nack', 'nack pli'].map((each) => `a=rtcp-fb:96 ${each}`),
          'a=rtpmap:97 rtx/90000',
          'a=fmtp:97 apt=96',
        ];

  return [
    `m=${kind} 9 UDP/TLS/RTP/SAVPF 96 ${kind === 'audio' ? '' : '97'}`.trim(),
    ...transport(mid),
    'a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
    'a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid',
    'a=rtcp-mux',
    'a=rtcp-rsize',
    ...codecs,
    ...lines,
  ];
}
