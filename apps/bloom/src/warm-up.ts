import { openActorSystem } from '@bloom/actors';
import { silentLog } from '@bloom/log';
import { defaultRoomConfig, RoomHost, RoomRouter, type PeerSocket } from '@bloom/rooms';
import {
  emptyEngineStats,
  type MediaEndpoint,
  type MediaEngine,
  type MediaRoom,
  type MediaRoomEvent,
} from '@bloom/sfu';
import { type LivekitModule, sessionsOf } from './livekit.js';

const ROOMS = 4;
/** Rooms with LiveKit's clients only. */
const LIVEKIT_ROOMS = 2;
const PEERS = 16;

/**
 * Runs imaginary clients through the real join path, so that it is compiled before the first room: in a cold process a
 * join costs several times as much. Opens no socket and runs while the media workers start. Returns how many joined.
 * `livekit`: also clients of this face.
 *
 * Three warm-ups share the work: this one for the control plane, `warmUpJoins` of @bloom/webrtc for the handshakes and
 * `warmUp` of @bloom/sfu for the packet path; the latter two run in each media worker.
 */
export async function warmUpRooms(livekit?: LivekitModule): Promise<number> {
  const system = openActorSystem({ log: silentLog });
  const options = { system, log: silentLog, secretKeyBase: '' };
  const host = new RoomHost({
    ...options,
    engine: idleEngine(),
    createSession: sessionsOf(livekit),
    events: () => undefined,
    address: '',
    webrtcEnabled: true,
  });
  const rooms = new RoomRouter({ ...options, host });
  let joined = 0;
  const join = async (roomId: string, publishes: boolean): Promise<void> => {
    const { peer, token } = await rooms.addPeer(roomId, {});
    await new Promise<void>((done, failed) => {
      let receive: (text: string) => void = () => undefined;
      const send = (type: string, data: unknown) => receive(JSON.stringify({ type: 'custom', data: { type, data } }));
      const socket: PeerSocket = {
        send(text) {
          if (publishes && text.startsWith('{"type":"connected"')) send('renegotiateTracks', undefined);
          if (text.includes('"offerData"')) {
            const trackId = `${peer.id}:0`;
            send('sdpOffer', {
              sdpOffer: { type: 'offer', sdp: offer(publishes) },
              trackIdToTrackMetadata: publishes ? { [trackId]: null } : {},
              trackIdToTrackBitrates: publishes ? { [trackId]: 1_500_000 } : {},
              midToTrackId: publishes ? { 0: trackId } : {},
            });
          }
          if (!text.includes('"candidate"')) return;
          joined += 1;
          done();
        },
        // Not reported: the fault recurs, with more context, at the first real client.
        close: () => done(),
        ping: () => Promise.resolve(true),
      };
      rooms.attachPeer(token, socket).then((attached) => {
        if (typeof attached === 'string') return done();
        receive = (text) => attached.receive(text);
        return receive('{"type":"connect","data":{"metadata":null}}');
      }, failed);
    });
  };

  const fill = async (count: number, joinRoom: typeof join): Promise<void> => {
    for (let each = 0; each < count; each += 1) {
      const { room } = await rooms.createRoom(defaultRoomConfig);
      for (let peer = 0; peer < PEERS; peer += 1) await joinRoom(room.id, peer === 0);
      await rooms.deleteRoom(room.id);
    }
  };

  try {
    await fill(ROOMS, join);
    if (livekit !== undefined) {
      const joinByLivekit = livekit.imaginaryJoins(rooms);
      await fill(LIVEKIT_ROOMS, async (roomId, publishes) => {
        await joinByLivekit(roomId, publishes);
        joined += 1;
      });
    }
  } finally {
    await system.close();
  }
  return joined;
}

/** A media engine without media that connects every peer immediately. */
function idleEngine(): MediaEngine {
  return {
    takesRooms: true,
    workerRestarts: 0,
    workersBusy: () => [],
    workerSamples: () => [],
    openRoom: async (roomId, emit) => idleRoom(roomId, emit),
    stats: async () => emptyEngineStats(),
    profileWorker: async () => undefined,
    close: async () => undefined,
  };
}

function idleRoom(roomId: string, emit: (event: MediaRoomEvent) => void): MediaRoom {
  const endpoint: MediaEndpoint = { address: '192.0.2.1', port: 1, fingerprint: { algorithm: 'sha-256', value: '00' } };

  return {
    roomId,
    openTransport: () => endpoint,
    openReceiver: () => undefined,
    endpointOf: () => endpoint,
    choiceOf: () => undefined,
    negotiate: async (peerId, { generation }) => {
      setImmediate(() => {
        emit({ type: 'iceConnected', peerId, generation });
        emit({ type: 'dtlsConnected', peerId });
      });
    },
    closeTransport: async () => undefined,
    isCurrent: () => true,
    do: () => undefined,
    openFeed: ({ trackId }) => ({ trackId, send: () => undefined, close: () => undefined }),
    openTap: ({ trackId }) => ({ trackId, requestKeyframe: () => undefined, close: async () => undefined }),
    stats: async () => ({ roomId, transports: [] }),
    capturePackets: async () => undefined,
    close: async () => undefined,
  };
}

/** An offer with one video m-line, as browsers write it. */
function offer(publishes: boolean): string {
  return [
    'v=0',
    'o=- 1 2 IN IP4 127.0.0.1',
    's=-',
    't=0 0',
    'a=group:BUNDLE 0',
    'a=extmap-allow-mixed',
    'a=msid-semantic: WMS',
    'm=video 9 UDP/TLS/RTP/SAVPF 96 97',
    'c=IN IP4 0.0.0.0',
    'a=rtcp:9 IN IP4 0.0.0.0',
    'a=ice-ufrag:warm',
    'a=ice-pwd:a-password-of-enough-letters',
    'a=ice-options:trickle',
    `a=fingerprint:sha-256 ${Array.from({ length: 32 }, () => '00').join(':')}`,
    'a=setup:actpass',
    'a=mid:0',
    'a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
    'a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid',
    publishes ? 'a=sendonly' : 'a=recvonly',
    'a=rtcp-mux',
    'a=rtcp-rsize',
    'a=rtpmap:96 VP8/90000',
    'a=rtcp-fb:96 goog-remb',
    'a=rtcp-fb:96 transport-cc',
    'a=rtcp-fb:96 ccm fir',
    'a=rtcp-fb:96 nack',
    'a=rtcp-fb:96 nack pli',
    'a=rtpmap:97 rtx/90000',
    'a=fmtp:97 apt=96',
    ...(publishes ? ['a=msid:a b', 'a=ssrc-group:FID 1 2', 'a=ssrc:1 cname:x', 'a=ssrc:2 cname:x'] : []),
    '',
  ].join('\r\n');
}
