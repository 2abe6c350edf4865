import { readFileSync } from 'node:fs';
import type { Settings, WebrtcSettings } from '@bloom/config';
import type { Log } from '@bloom/log';

/** Bloom's version, semver. */
export const VERSION = (
  JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
).version;

export interface Welcome {
  settings: Settings;
  url: string;
  metricsUrl: string;
  hasPage: boolean;
}

/** Logs which version runs with which settings, without secrets, and what to open next. */
export function logWelcome(log: Log, { settings, url, metricsUrl, hasPage }: Welcome): void {
  const { profile, gitCommit, webrtc, cluster, http } = settings;
  log.info(`Bloom ${VERSION} (${gitCommit}) listens on ${url}`, { profile, publicAddress: http.host });
  if (webrtc === null) log.info('WebRTC is off: JF_WEBRTC_USED=false');
  else {
    const { min, max } = webrtc.turnPortRange;
    const { turnIp, turnListenIp, second, more, turnTlsPort, turnTlsHost, turnTlsOnHttp, advertisedPorts } = webrtc;
    const others = [...(second === null ? [] : [second.turnIp]), ...(more === 'machine' ? [] : more)];
    const reached = new Intl.ListFormat('en-GB').format([turnIp, ...others]);
    log.info(`WebRTC: clients reach ${reached}, UDP ports ${min}-${max}`, {
      listenIp: second === null ? turnListenIp : `${turnListenIp} ${second.turnListenIp}`,
      tcpPort: webrtc.turnTcpPort ?? 'off',
      tls: turnTlsPort === null ? 'off' : `${turnTlsHost}:${turnTlsOnHttp ?? turnTlsPort}`,
      workers: settings.mediaWorkers,
      ...(advertisedPorts === null ? {} : { advertisedPorts: mappingText(advertisedPorts) }),
    });
  }
  if (cluster === null) log.info('Distribution is off: JF_DIST_ENABLED is not true');
  else {
    const { mode, nodeName, discovery } = cluster;
    log.info(`Distribution: ${nodeName}`, { mode, discovery: discovery.strategy });
  }
  log.info(`Metrics: ${metricsUrl}/metrics`);
  log.info(pageText(settings, url, hasPage));
  if (profile !== 'development') return;

  const token = http.apiToken === 'development' ? 'development' : '$JF_SERVER_API_TOKEN';
  log.info(`Or create a room: curl -X POST -H "Authorization: Bearer ${token}" ${url}/room`);
  log.info(`The API is described at ${url}/docs`);
}

function pageText({ dashboard }: Settings, url: string, hasPage: boolean): string {
  if (dashboard === false) return 'The dashboard is off; JF_DASHBOARD=true turns it on';
  if (!hasPage) return 'The page of the dashboard is not built: npm run build';
  if (dashboard === 'guests') return `Guests with an invitation join at ${url}/`;

  return `Open ${url}/ for the dashboard, ${url}/#/call in two tabs to be in a call`;
}

/** `+10000`, or `50000=31000 50001=31001` */
function mappingText({ offset, listed }: NonNullable<WebrtcSettings['advertisedPorts']>): string {
  return listed.size === 0 ? `+${offset}` : [...listed].map((pair) => pair.join('=')).join(' ');
}
