/** The client side of LiveKit's signalling, version 1, with the offer of livekit-client: no browser, but werift. */
import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import {
  AddTrackRequest,
  ClientInfo,
  ConnectionSettings,
  JoinRequest,
  LeaveRequest,
  Ping,
  SessionDescription,
  SignalRequest,
  SignalResponse,
  TrackSource,
  TrackType,
  WrappedJoinRequest,
  WrappedJoinRequest_Compression,
} from '@livekit/protocol';
import { connected, gathered, type Publisher } from '@bloom/participant';
import { SignJWT } from 'jose';
import type { RTCPeerConnection } from 'werift';
import WebSocket from 'ws';
import { address } from '../private-network.js';

const KEY = 'APIbench';
const SECRET = 'a-secret-of-more-than-thirty-two-characters';
/** Settings of a node that serves these clients. */
export const livekitNode = { JF_LIVEKIT_KEYS: `${KEY}: ${SECRET}` };

/** Sections for others' tracks that livekit-client offers from the start, of each kind. */
const SECTIONS = 3;
const PROTOCOL = 17;
/** Interval of the client's two pings. */
const PING_MS = 5_000;

interface Joining {
  port: number;
  room: string;
  publisher?: Publisher | undefined;
}

/** Somebody in a room. */
export interface LivekitClient {
  readonly socket: WebSocket;
  /** Leaves the room. */
  leave(): Promise<void>;
}

/** Joins a room. Resolves when media can flow. Later requests for sections are answered until the socket closes. */
export async function joinByLivekit(pc: RTCPeerConnection, { port, room, publisher }: Joining): Promise<LivekitClient> {
  let offers = 0;
  const offer = async (): Promise<SessionDescription> => {
    await pc.setLocalDescription(await pc.createOffer());
    await gathered(pc);
    offers += 1;

    return new SessionDescription({ type: 'offer', sdp: pc.localDescription?.sdp ?? '', id: offers });
  };

  if (publisher !== undefined) pc.addTransceiver(publisher.track, { direction: 'sendonly' });
  // The receivers of the load look for their track in the first section.
  addSections(pc, { video: SECTIONS, audio: SECTIONS });
  // werift chooses odd streams by its ICE role, and the server resets them: the DTLS client has the even ones (RFC 8832
  // section 6).
  pc.createDataChannel('_reliable', { id: 0, ordered: true });
  pc.createDataChannel('_lossy', { id: 2, ordered: false, maxRetransmits: 0 });
  pc.createDataChannel('_data_track', { id: 4, ordered: false, maxRetransmits: 0 });
  const publisherOffer = await offer();
  const request = new JoinRequest({
    clientInfo: new ClientInfo({ version: '2.23.0', protocol: PROTOCOL }),
    connectionSettings: new ConnectionSettings({ autoSubscribe: true }),
    addTrackRequests: publisher === undefined ? [] : [trackRequest(publisher, publisherOffer.sdp)],
    publisherOffer,
  });
  const wrapped = new WrappedJoinRequest({
    compression: WrappedJoinRequest_Compression.GZIP,
    joinRequest: gzipSync(request.toBinary()),
  });
  const parameters = new URLSearchParams({
    access_token: await tokenFor(room),
    join_request: Buffer.from(wrapped.toBinary()).toString('base64url'),
  });
  const socket = new WebSocket(`ws://${address}:${port}/rtc/v1?${parameters.toString()}`);
  const send = (message: SignalRequest['message']): void => socket.send(new SignalRequest({ message }).toBinary());
  const closed = new Promise<void>((done) => socket.once('close', () => done()));

  await new Promise<void>((done, failed) => {
    const fail = (error: unknown): void => failed(error instanceof Error ? error : new Error(String(error)));
    socket.on('error', fail);
    socket.on('close', (code, reason) => fail(`signal websocket closed: ${code} ${reason.toString()}`));
    socket.on('message', (data: Buffer) => {
      const { message } = SignalResponse.fromBinary(data);
      if (message.case === 'answer' && message.value.id === offers) {
        pc.setRemoteDescription({ type: 'answer', sdp: message.value.sdp })
          .then(() => connected(pc, publisher === undefined ? 'subscriber' : 'publisher'))
          .then(done, fail);
      } else if (message.case === 'mediaSectionsRequirement') {
        addSections(pc, { video: message.value.numVideos, audio: message.value.numAudios });
        offer().then((value) => send({ case: 'offer', value }), fail);
      } else if (message.case === 'leave') {
        fail(`the server ended the participation: ${message.value.reason}`);
      }
    });
  });
  const pinging = setInterval(() => {
    const timestamp = BigInt(Date.now());
    send({ case: 'ping', value: timestamp });
    send({ case: 'pingReq', value: new Ping({ timestamp }) });
  }, PING_MS);
  void closed.then(() => clearInterval(pinging));

  return {
    socket,
    leave: async () => {
      send({ case: 'leave', value: new LeaveRequest() });
      await closed;
    },
  };
}

function addSections(pc: RTCPeerConnection, { video, audio }: { video: number; audio: number }): void {
  for (let i = 0; i < video; i += 1) pc.addTransceiver('video', { direction: 'recvonly' });
  for (let i = 0; i < audio; i += 1) pc.addTransceiver('audio', { direction: 'recvonly' });
}

/** Clients name a track as their offer does. */
function trackRequest({ kind }: Publisher, sdp: string): AddTrackRequest {
  const isVideo = kind === 'video';

  return new AddTrackRequest({
    cid: /a=msid:\S+ (\S+)/.exec(sdp)?.[1] ?? randomUUID(),
    type: isVideo ? TrackType.VIDEO : TrackType.AUDIO,
    source: isVideo ? TrackSource.CAMERA : TrackSource.MICROPHONE,
  });
}

/** Returns a token of the room for a new identity. */
function tokenFor(room: string): Promise<string> {
  return new SignJWT({ video: { roomJoin: true, room } })
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuer(KEY)
    .setSubject(randomUUID())
    .setExpirationTime('1h')
    .sign(new TextEncoder().encode(SECRET));
}
