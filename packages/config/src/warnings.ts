import { isIP } from 'node:net';
import { DEFAULT_COOKIE } from './cluster.js';
import type { Reader } from './reader.js';
import type { ConfigWarning, Settings } from './settings.js';

/** Returns a warning for each default that cannot work or is not safe in this deployment. */
export function deploymentWarnings(settings: Settings, reader: Reader): ConfigWarning[] {
  const { profile, http, webrtc, cluster } = settings;
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
    if (cluster !== null && !reader.isSet('secretKeyBase')) {
      warn(
        'JF_SECRET_KEY_BASE',
        'JF_SECRET_KEY_BASE is random: the other nodes refuse the peer tokens of this one, set one value for all',
      );
    }
  }
  if (cluster?.cookie === DEFAULT_COOKIE) {
    warn(
      'JF_DIST_COOKIE',
      'JF_DIST_COOKIE is the default: this cluster is open to its whole network, set a secret of your own',
    );
  }

  return warnings;
}

/** Returns the host of `host[:port][/path]`, IPv6 without brackets. */
export function hostOf(publicHost: string): string {
  return /^(?:\[([^\]]+)\]|([^:/]+))/.exec(publicHost)?.slice(1).find(Boolean) ?? publicHost;
}

function isLocal(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function isAny(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
