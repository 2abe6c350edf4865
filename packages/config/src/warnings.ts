import { BlockList, isIP } from 'node:net';
import { DEFAULT_COOKIE } from './cluster.js';
import { MIN_LIVEKIT_SECRET } from './livekit.js';
import type { Reader } from './reader.js';
import type { ConfigWarning, Settings, WebrtcSettings } from './settings.js';
import { PUBLIC_API_TOKEN } from './variables.js';

const MIN_TOKEN = 16;
const MIN_SECRET = 12;
const LONGER = 'it can be guessed, `openssl rand -hex 32` makes a good one';

/** Returns a warning for each default that cannot work or is unsafe in this deployment. */
export function deploymentWarnings(settings: Settings, reader: Reader): ConfigWarning[] {
  const { profile, http, webrtc, cluster, webhooks } = settings;
  const warnings: ConfigWarning[] = [];
  const warn = (variable: string, message: string): void => void warnings.push({ variable, message });

  if (profile === 'production') {
    const host = hostOf(http.host);
    const isOpen = !isLocal(http.ip);
    if (isOpen && (isLocal(host) || isAny(host))) {
      warn(
        'JF_HOST',
        `JF_HOST is ${http.host}: clients are sent there and cannot reach it, set the public address of this node`,
      );
    }
    if (webrtc !== null && (isLocal(webrtc.turnIp) || isAny(webrtc.turnIp)) && (isOpen || !isLocal(host))) {
      warn(
        'JF_WEBRTC_TURN_IP',
        `JF_WEBRTC_TURN_IP is ${webrtc.turnIp}: clients elsewhere get no media, set the address that they reach`,
      );
    }
    if (webrtc !== null && isRefusedByChromium(webrtc)) {
      const { min, max } = webrtc.turnPortRange;
      warn(
        'JF_WEBRTC_TURN_PORT_RANGE',
        `JF_WEBRTC_TURN_PORT_RANGE is ${min}-${max}${webrtc.advertisedPorts === null ? '' : ', as mapped by JF_WEBRTC_ADVERTISED_PORTS'}: below 1024 Chromium takes media from ports 80 and 443 of public addresses only, choose ports from 1024 on`,
      );
    }
    if (webrtc !== null && webrtc.turnTlsPort !== null && isIP(webrtc.turnTlsHost) !== 0) {
      warn(
        'JF_WEBRTC_TURN_TLS_PORT',
        `JF_WEBRTC_TURN_TLS_PORT is announced at ${webrtc.turnTlsHost}: Firefox takes media over TLS from a host name only, set JF_HOST to the name in the certificate`,
      );
    }
    if (cluster !== null && !reader.isSet('secretKeyBase')) {
      warn(
        'JF_SECRET_KEY_BASE',
        'JF_SECRET_KEY_BASE is random: the other nodes refuse the peer tokens of this one, set one value for all',
      );
    }
  }
  if (http.apiToken === PUBLIC_API_TOKEN) {
    if (profile === 'production' || !isLocal(http.ip)) {
      warn(
        'JF_SERVER_API_TOKEN',
        'JF_SERVER_API_TOKEN is the public default, which everybody knows: set one of your own',
      );
    }
  } else if (profile === 'production' && http.apiToken.length < MIN_TOKEN) {
    warn('JF_SERVER_API_TOKEN', `JF_SERVER_API_TOKEN has less than ${MIN_TOKEN} characters: ${LONGER}`);
  }
  if (profile === 'production') {
    const secrets = { JF_SECRET_KEY_BASE: http.secretKeyBase, JF_WEBHOOK_SECRET: webhooks.secret };
    for (const [variable, secret] of Object.entries(secrets)) {
      if (secret === null || secret.length >= MIN_SECRET) continue;
      warn(variable, `${variable} has less than ${MIN_SECRET} characters: ${LONGER}`);
    }
  }
  if (settings.livekit?.keys.some(({ secret }) => secret.length < MIN_LIVEKIT_SECRET) === true) {
    warn('JF_LIVEKIT_KEYS', `JF_LIVEKIT_KEYS has a secret of less than ${MIN_LIVEKIT_SECRET} characters: ${LONGER}`);
  }
  if (cluster?.cookie === DEFAULT_COOKIE) {
    warn(
      'JF_DIST_COOKIE',
      'JF_DIST_COOKIE is the default: this cluster is open to its whole network, set a secret of your own',
    );
  }

  return warnings;
}

const PRIVATE = new BlockList();
for (const [network, prefix] of [
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['169.254.0.0', 16],
  ['127.0.0.0', 8],
] as const) {
  PRIVATE.addSubnet(network, prefix);
}

/** Chromium silently ignores ICE candidates with such ports. Port 0 stands for any, which is above. */
function isRefusedByChromium({ turnPortRange: { min, max }, advertisedPorts, turnIp }: WebrtcSettings): boolean {
  const { offset = 0, listed = new Map<number, number>() } = advertisedPorts ?? {};
  const used = [...listed].flatMap(([port, advertised]) => (port > min && port <= max ? advertised : []));
  const lowest = Math.min(listed.get(min) ?? min + offset, ...used);
  if (min === 0 || lowest >= 1_024) return false;
  const isKnown = min === max && (lowest === 80 || lowest === 443);

  return !isKnown || (isIP(turnIp) === 4 && PRIVATE.check(turnIp));
}

/** Returns the host of `host[:port][/path]`, IPv6 without brackets. */
export function hostOf(publicHost: string): string {
  return /^(?:\[([^\]]+)\]|([^:/]+))/.exec(publicHost)?.slice(1).find(Boolean) ?? publicHost;
}

/** Returns the port of `host[:port][/path]`; undefined without one. */
export function portOf(publicHost: string): number | undefined {
  const port = /^(?:\[[^\]]+\]|[^:/]+):(\d+)/.exec(publicHost)?.[1];

  return port === undefined ? undefined : Number(port);
}

export function isLocal(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

export function isAny(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
