import { decodePeerMessage, encodePeerMessage } from '@bloom/protocol';
import type { MediaStreamTrack, RTCPeerConnection } from 'werift';
import type WebSocket from 'ws';
import { connected } from './connection.js';

/** A relay of the server, as announced to clients. */
export interface RelayServer {
  readonly serverAddr: string;
  readonly serverPort: number;
  readonly transport: 'udp' | 'tcp' | 'tls';
  readonly username: string;
  readonly password: string;
}

interface SignalOptions {
  readonly token: string;
  readonly publisher: { readonly track: MediaStreamTrack } | undefined;
  /** Called when the server has accepted the token. */
  onAuthenticated?(): void;
  /** Called before the first offer: the last moment to choose servers and the transport policy. */
  onServers?(relays: readonly RelayServer[]): void;
}

/** Bound that is announced for the track. */
const MAX_BITRATE_BPS = 50_000_000;

/** Waits until the description contains all candidates. */
export async function gathered(pc: RTCPeerConnection): Promise<void> {
  if (pc.iceGatheringState === 'complete') return;
  await new Promise<void>((done) => {
    pc.iceGatheringStateChange.subscribe((state) => {
      if (state === 'complete') done();
    });
  });
}

interface OfferData {
  tracksTypes: { audio?: number; video?: number };
  integratedTurnServers: readonly RelayServer[];
}

/**
 * The client side of the signalling, like the published SDK but over host candidates. Resolves when media can flow; a
 * subscriber waits for the first track of the others. Later offers are answered until the socket closes.
 */
export async function signal(
  pc: RTCPeerConnection,
  socket: WebSocket,
  { token, publisher, onAuthenticated, onServers }: SignalOptions,
): Promise<void> {
  const send = (event: unknown) => socket.send(encodePeerMessage({ type: 'mediaEvent', data: JSON.stringify(event) }));
  const custom = (type: string, data?: unknown) => send({ type: 'custom', data: { type, data } });
  let ownId = '';
  let slots = 0;
  let isFirst = true;

  const offer = async ({ tracksTypes, integratedTurnServers }: OfferData) => {
    if (isFirst) {
      isFirst = false;
      onServers?.(integratedTurnServers);
      if (publisher) pc.addTransceiver(publisher.track, { direction: 'sendonly' });
    }
    const wanted = (tracksTypes.audio ?? 0) + (tracksTypes.video ?? 0);
    for (; slots < wanted; slots += 1) {
      pc.addTransceiver(slots < (tracksTypes.audio ?? 0) ? 'audio' : 'video', { direction: 'recvonly' });
    }
    await pc.setLocalDescription(await pc.createOffer());
    await gathered(pc);
    const mid = pc.getTransceivers().find((t) => t.sender.track)?.mid;
    const trackId = `${ownId}:load`;
    custom('sdpOffer', {
      sdpOffer: { type: 'offer', sdp: pc.localDescription?.sdp },
      trackIdToTrackMetadata: publisher ? { [trackId]: null } : {},
      trackIdToTrackBitrates: publisher ? { [trackId]: MAX_BITRATE_BPS } : {},
      midToTrackId: publisher && mid ? { [mid]: trackId } : {},
    });
  };

  await new Promise<void>((done, failed) => {
    const fail = (error: unknown) => failed(error instanceof Error ? error : new Error(String(error)));
    socket.on('error', fail);
    socket.on('close', (code, reason) => fail(`peer websocket closed: ${code} ${reason.toString()}`));
    socket.on('open', () => socket.send(encodePeerMessage({ type: 'authRequest', token })));
    socket.on('message', (data: Buffer) => {
      const message = decodePeerMessage(data);
      if (message.type === 'authenticated') {
        onAuthenticated?.();
        send({ type: 'connect', data: { metadata: null } });
      }
      if (message.type !== 'mediaEvent') return;
      let event = JSON.parse(message.data) as { type: string; data?: never };
      if (event.type === 'custom') event = event.data as unknown as typeof event;
      const body = event.data as unknown;
      if (event.type === 'connected') {
        ownId = (body as { id: string }).id;
        if (publisher || pc.sctpTransport) custom('renegotiateTracks');
      } else if (event.type === 'offerData') {
        offer(body as OfferData).catch(fail);
      } else if (event.type === 'sdpAnswer') {
        pc.setRemoteDescription(body as { type: 'answer'; sdp: string })
          .then(() => connected(pc, publisher ? 'publisher' : 'subscriber'))
          .then(done, fail);
      } else if (event.type === 'candidate') {
        pc.addIceCandidate(body as { candidate: string; sdpMLineIndex: number }).catch(fail);
      }
    });
  });
}
