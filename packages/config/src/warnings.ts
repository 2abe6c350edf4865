import { isIP } from 'node:net';
import { DEFAULT_COOKIE } from './cluster.js';
import type { Reader } from './reader.js';
import type { ConfigWarning, Settings } from './settings.js';
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

export function isLocal(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function isAny(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
