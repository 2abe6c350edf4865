/** werift's peer connection as a participant: real ICE, DTLS and SRTP on one UDP socket. */
import type { Socket } from 'node:dgram';
import {
  RTCPeerConnection,
  RTCRtpCodecParameters,
  RTCRtpHeaderExtensionParameters,
  RtpPacket,
  useAbsSendTime,
  useAudioLevelIndication,
  useSdesMid,
  useTransportWideCC,
} from 'werift';
import type { LoadCodec } from './layered-payload.js';
import { startStunServer } from './stun-server.js';

/** A STUN server in this process: otherwise werift asks a public one and waits for it. */
const STUN = [{ urls: await startStunServer() }];

const DESCRIPTOR_URI = 'https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension';

export type ConnectionSettings = Exclude<ConstructorParameters<typeof RTCPeerConnection>[0], undefined>;

/**
 * Opens a connection with Chromium's SFU features: transport-wide feedback, RTX and header extensions. `codec`: the one
 * of its video.
 */
export function openConnection(settings: ConnectionSettings = {}, codec: LoadCodec = 'vp8'): RTCPeerConnection {
  const feedback = [{ type: 'transport-cc' }];
  const repair = [{ type: 'nack' }, { type: 'nack', parameter: 'pli' }, { type: 'ccm', parameter: 'fir' }];
  const extensions = () => [useSdesMid(), useTransportWideCC(), useAbsSendTime()];
  return new RTCPeerConnection({
    iceServers: STUN,
    iceUseIpv6: false,
    codecs: {
      video: [
        new RTCRtpCodecParameters({
          mimeType: `video/${codec.toUpperCase()}`,
          clockRate: 90_000,
          payloadType: 96,
          ...(codec === 'h264' ? { parameters: 'packetization-mode=1;profile-level-id=42e01f' } : {}),
          rtcpFeedback: [...repair, ...feedback],
        }),
        new RTCRtpCodecParameters({ mimeType: 'video/rtx', clockRate: 90_000, payloadType: 97, parameters: 'apt=96' }),
      ],
      audio: [
        new RTCRtpCodecParameters({
          mimeType: 'audio/opus',
          clockRate: 48_000,
          channels: 2,
          payloadType: 111,
          rtcpFeedback: feedback,
        }),
      ],
    },
    headerExtensions: {
      audio: [...extensions(), useAudioLevelIndication()],
      video: [
        ...extensions(),
        ...(codec === 'av1' ? [new RTCRtpHeaderExtensionParameters({ uri: DESCRIPTOR_URI })] : []),
      ],
    },
    ...settings,
  });
}

/** What a connection has negotiated for its received track; 0 means nothing. */
interface Negotiated {
  rtxPayloadType: number;
  transportCcId: number;
}

export function negotiatedBy(pc: RTCPeerConnection): Negotiated {
  const [transceiver] = pc.getTransceivers();
  const uri = useTransportWideCC().uri;
  return {
    rtxPayloadType: transceiver?.codecs.find(({ name }) => name.toLowerCase() === 'rtx')?.payloadType ?? 0,
    transportCcId: transceiver?.headerExtensions.find((extension) => extension.uri === uri)?.id ?? 0,
  };
}

/** Time limit for ICE and DTLS, ms. */
const CONNECT_MS = 20_000;

/** Resolves when ICE and DTLS have succeeded. Rejects with the state that they reached. */
export function connected(pc: RTCPeerConnection, what: string): Promise<void> {
  return new Promise((done, failed) => {
    const timer = setTimeout(
      () => failed(new Error(`${what}: no connection within ${CONNECT_MS / 1_000} s (${stateOf(pc)})`)),
      CONNECT_MS,
    );
    const look = () => {
      if (pc.connectionState === 'connected') {
        clearTimeout(timer);
        done();
      } else if (pc.connectionState === 'failed' || pc.connectionState === 'closed') {
        clearTimeout(timer);
        failed(new Error(`${what}: the connection ${pc.connectionState === 'failed' ? 'failed' : 'was closed'}`));
      }
    };
    pc.connectionStateChange.subscribe(look);
    look();
  });
}

/** Describes a connection's progress: its candidate pairs and DTLS flight. */
function stateOf(pc: RTCPeerConnection): string {
  const [ice, dtls] = [pc.iceTransports[0], pc.dtlsTransports[0]];
  const { checkList = [] } = (ice?.connection ?? {}) as { checkList?: { state?: unknown; remoteAddr?: unknown }[] };
  const { flight } = ((dtls as unknown as { dtls?: { dtls?: { flight?: number } } }).dtls?.dtls ?? {}) as {
    flight?: number;
  };
  const pairs = checkList.map(({ state, remoteAddr }) => `${String(state)} to ${String(remoteAddr)}`);
  return `${pc.connectionState}; ICE ${ice?.state}, pairs [${pairs.join(', ')}]; DTLS ${dtls?.state}, flight ${flight}`;
}

interface Transport {
  socket: Socket;
  onData: (data: Buffer, from: [string, number]) => void;
}

interface Nominated {
  protocol: { transport: Transport; turn?: { transport: { type: string } } };
  remoteAddr: [string, number];
}

function nominatedOf(pc: RTCPeerConnection): Nominated {
  const ice = pc.iceTransports[0]?.connection as unknown as { nominated?: Nominated } | undefined;
  if (ice?.nominated === undefined) throw new Error('no nominated pair');
  return ice.nominated;
}

/** Returns the socket of the nominated pair, which werift keeps several layers down. */
export function transportOf(pc: RTCPeerConnection): Transport {
  return nominatedOf(pc).protocol.transport;
}

/** Returns the transport to the relay in use, `udp`, `tcp` or `tls`; undefined for a direct path. */
export function nominatedRelay(pc: RTCPeerConnection): string | undefined {
  return nominatedOf(pc).protocol.turn?.transport.type;
}

/** Returns the remote address for datagrams that bypass werift. */
export function remoteOf(pc: RTCPeerConnection): [string, number] {
  return nominatedOf(pc).remoteAddr;
}

/** Returns the plaintext of one SRTP datagram, decrypted by werift's session, which proves that it is valid. */
export function decrypt(pc: RTCPeerConnection, datagram: Buffer): RtpPacket {
  const { srtp } = pc.dtlsTransports[0] as unknown as { srtp: { decrypt(data: Buffer): Buffer } };
  return RtpPacket.deSerialize(srtp.decrypt(datagram));
}
