import type { PullerInput } from './engine/puller-protocol.js';
import type { SourceScheme, SourceUri } from './source-uri.js';

/** Time limit of one wait for the network, in the library's microseconds. */
const IO_TIMEOUT = '5000000';

/**
 * Formats and protocols of the native library for each scheme. The format is never guessed, and no other protocol is opened,
 * whatever a redirect or a session description asks for.
 */
const SOURCES: Readonly<Record<SourceScheme, { format: PullerInput['format']; protocols: string; formats: string }>> = {
  rtsp: { format: 'rtsp', protocols: 'rtsp,tcp,udp,rtp', formats: 'rtsp,rtp,mpegts' },
  // The camera itself is reached by our own side, which does TLS.
  rtsps: { format: 'rtsp', protocols: 'rtsp,tcp', formats: 'rtsp,rtp,mpegts' },
  srt: { format: 'mpegts', protocols: 'srt', formats: 'mpegts' },
  rtmp: { format: 'flv', protocols: 'rtmp,tcp', formats: 'flv' },
  rtmps: { format: 'flv', protocols: 'rtmps,tls,tcp', formats: 'flv' },
};

/** Returns what the native library opens for the address. `rtpPort` is where RTP over UDP arrives first. */
export function pullerInput({ scheme, secret, transport, srt }: SourceUri, rtpPort: number): PullerInput {
  const { format, protocols, formats } = SOURCES[scheme];
  const common = { protocol_whitelist: protocols, format_whitelist: formats, fflags: 'nobuffer' };
  const options =
    format === 'rtsp'
      ? // Nothing encrypts RTP over UDP.
        { ...common, ...rtspOptions(scheme === 'rtsps' ? 'tcp' : transport) }
      : format === 'flv'
        ? { ...common, rw_timeout: IO_TIMEOUT, rtmp_live: 'live' }
        : { ...common, ...srt, mode: 'caller', timeout: IO_TIMEOUT, connect_timeout: '5000' };

  return { uri: secret, format, options, rtpPort: Math.min(rtpPort, 65_535 - PORTS) };
}

/** Ports of two streams with their RTCP, after the first. */
const PORTS = 3;

function rtspOptions(transport: SourceUri['transport']): Record<string, string> {
  return {
    // By TCP where the camera can: nothing is lost, and no port has to be open. Otherwise by UDP.
    ...(transport === undefined
      ? { rtsp_transport: 'tcp+udp', rtsp_flags: 'prefer_tcp+filter_src' }
      : { rtsp_transport: transport, rtsp_flags: 'filter_src' }),
    timeout: IO_TIMEOUT,
    // Ports of the library are seen by this machine only; the camera sends to those of our own side.
    localaddr: '127.0.0.1',
    min_port: '49152',
    max_port: '65535',
    // Events and other data need no session, and no port.
    allowed_media_types: 'video+audio',
  };
}
