import type { Settings } from '@bloom/config';
import type { Log } from '@bloom/log';
import { VERSION } from './version.js';

export interface Welcome {
  settings: Settings;
  url: string;
  metricsUrl: string;
  hasPage: boolean;
}

/** Logs what runs with which settings, without secrets; in the development profile also what to do next. */
export function logWelcome(log: Log, { settings, url, metricsUrl, hasPage }: Welcome): void {
  const { profile, gitCommit, webrtc, cluster, http } = settings;
  log.info(`Bloom ${VERSION} (${gitCommit}) listens on ${url}`, { profile, publicAddress: http.host });
  if (webrtc === null) log.info('WebRTC is off: JF_WEBRTC_USED=false');
  else {
    const { min, max } = webrtc.turnPortRange;
    const { turnIp, turnListenIp, second } = webrtc;
    const reached = second === null ? turnIp : `${turnIp} and ${second.turnIp}`;
    log.info(`WebRTC: clients reach ${reached}, UDP ports ${min}-${max}`, {
      listenIp: second === null ? turnListenIp : `${turnListenIp} ${second.turnListenIp}`,
      tcpPort: webrtc.turnTcpPort ?? 'off',
      tlsPort: webrtc.turnTlsPort ?? 'off',
      workers: settings.mediaWorkers,
    });
  }
  if (cluster === null) log.info('Distribution is off: JF_DIST_ENABLED is not true');
  else {
    const { mode, nodeName, discovery } = cluster;
    log.info(`Distribution: ${nodeName}`, { mode, discovery: discovery.strategy });
  }
  log.info(`Metrics: ${metricsUrl}/metrics`);
  if (profile !== 'development') return;

  if (hasPage) log.info(`Open ${url}/ for the dashboard, ${url}/#/call in two tabs to be in a call`);
  else log.info('The page to try it is not built: npm run build -w apps/dashboard');
  const token = http.apiToken === 'development' ? 'development' : '$JF_SERVER_API_TOKEN';
  log.info(`Or create a room: curl -X POST -H "Authorization: Bearer ${token}" ${url}/room`);
  log.info(`The API is described at ${url}/docs`);
}
