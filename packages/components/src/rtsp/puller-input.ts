import type { PullerInput } from './engine/puller-protocol.js';
import type { SourceScheme, SourceUri } from './source-uri.js';

/** Time limit for each network wait, in microseconds as the library expects. */
const IO_TIMEOUT = '5000000';

/**
 * The native library's formats and protocols per scheme. The format is never guessed, and no other protocol is opened,
 * whatever a redirect or session description requests.
 */
const SOURCES: Readonly<Record<SourceScheme, { format: PullerInput['format']; protocols: string; formats: string }>> = {
  rtsp: { format: 'rtsp', protocols: 'rtsp,tcp,udp,rtp', formats: 'rtsp,rtp,mpegts' },
  // Our side connects to the camera itself and does TLS.
  rtsps: { format: 'rtsp', protocols: 'rtsp,tcp', formats: 'rtsp,rtp,mpegts' },
  srt: { format: 'mpegts', protocols: 'srt', formats: 'mpegts' },
  rtmp: { format: 'flv', protocols: 'rtmp,tcp', formats: 'flv' },
  rtmps: { format: 'flv', protocols: 'rtmps,tls,tcp', formats: 'flv' },
};

/** Returns the input for the native library. `rtpPort` is where RTP over UDP arrives first. */
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

/** Ports after the first one, for two streams with RTCP. */
const PORTS = 3;

function rtspOptions(transport: SourceUri['transport']): Record<string, string> {
  return {
    // TCP where the camera can, since it loses nothing and needs no open ports; UDP otherwise.
    ...(transport === undefined
      ? { rtsp_transport: 'tcp+udp', rtsp_flags: 'prefer_tcp+filter_src' }
      : { rtsp_transport: transport, rtsp_flags: 'filter_src' }),
    timeout: IO_TIMEOUT,
    // Only this machine sees the library's ports; the camera sends to ours.
    localaddr: '127.0.0.1',
    min_port: '49152',
    max_port: '65535',
    // Skip events and other data, which would only take up sessions and ports.
    allowed_media_types: 'video+audio',
  };
}
