import { isIPv6 } from 'node:net';
import type { PullerInput } from './engine/puller-protocol.js';
import { isName } from './reachability.js';
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

/**
 * Returns the input for the native library. `rtpPort` is where RTP over UDP arrives first, `address` an address of the
 * source's host.
 */
export function pullerInput(source: SourceUri, rtpPort: number, address?: string): PullerInput {
  const { scheme, secret, transport, srt } = source;
  const { format, protocols, formats } = SOURCES[scheme];
  const common = { protocol_whitelist: protocols, format_whitelist: formats, fflags: 'nobuffer' };
  const options =
    format === 'rtsp'
      ? // Nothing encrypts RTP over UDP.
        { ...common, ...rtspOptions(scheme === 'rtsps' ? 'tcp' : transport) }
      : format === 'flv'
        ? { ...common, rw_timeout: IO_TIMEOUT, rtmp_live: 'live' }
        : { ...common, ...srt, mode: 'caller', timeout: IO_TIMEOUT, connect_timeout: '5000' };

  const input = { uri: secret, format, options, rtpPort: Math.min(rtpPort, 65_535 - PORTS) };

  return address === undefined || !isName(source.host) ? input : atAddress(input, source, address);
}

/** Puts an address in place of the name, so that the library need not look it up: it would use `getaddrinfo`. */
function atAddress(input: PullerInput, { scheme, host, port, secret }: SourceUri, address: string): PullerInput {
  if (input.format === 'rtsp') return { ...input, address };
  // The library sends no server name with the certificate request of a numeric host.
  if (scheme === 'rtmps') return input;
  const [, before = '', path = ''] = /^([a-z]+:\/\/(?:[^/?#]*@)?)[^/?#]*(.*)$/.exec(secret) ?? [];
  const uri = `${before}${isIPv6(address) ? `[${address}]` : address}:${port}${path}`;
  if (scheme === 'srt') return { ...input, uri };
  // Servers choose by the name in this field, which the library would derive from the address.
  const options = { ...input.options, rtmp_tcurl: `rtmp://${host}:${port}/${rtmpApp(path)}` };

  return { ...input, uri, options };
}

/** Returns the part of a path that names the application, as the native library splits it. */
function rtmpApp(path: string): string {
  const [app = '', ...rest] = path.slice(1).split('/');
  if (app === 'ondemand' && rest.length > 0) return app;
  // A colon belongs to the name of the stream, such as `mp4:yard`.
  const hasInstance = rest.length > 1 && !rest[0]!.includes(':');

  return hasInstance ? `${app}/${rest[0]}` : app;
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
