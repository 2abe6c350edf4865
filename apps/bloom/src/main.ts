import { randomBytes } from 'node:crypto';
import { availableParallelism, hostname } from 'node:os';
import {
  ConfigError,
  loadConfig,
  printConfig,
  secretValues,
  wantsStructuredLogging,
  type LoadedConfig,
  type Settings,
} from '@bloom/config';
import { createLogger, logWarnings, type Log } from '@bloom/log';
import { connectionLimits } from './descriptors.js';
import { withMediaAddress } from './media-address.js';
import type { RunningNode } from './node.js';
import { ClusterError, firstFault, withOwnName } from './own-name.js';
import {
  BAD_CONFIG,
  closeOnSignals,
  endOnFaults,
  exit,
  FAILED,
  watchStuckThreads,
  outliveOutput,
} from './process-end.js';
import { logWelcome, VERSION } from './welcome.js';

/** Permission bits of users who are neither the owner nor in the group. */
const OTHERS = 0o007;

async function load(): Promise<LoadedConfig> {
  try {
    return loadConfig(process.env, {
      cwd: process.cwd(),
      hostname: hostname(),
      cores: availableParallelism(),
      randomBytes,
    });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { message, variable } = await firstFault(error);
    createLogger({ structured: wantsStructuredLogging(process.env) }).error(message, { variable });
    process.exit(BAD_CONFIG);
  }
}

/** A node writes people's calls to disk: users outside its group must not read them, whatever the umask. */
function hideFromOthers(): void {
  const given = process.umask(OTHERS);
  process.umask(given | OTHERS);
}

async function main(): Promise<void> {
  hideFromOthers();
  outliveOutput();
  if (process.argv.includes('--version')) {
    process.stdout.write(`Bloom ${VERSION} (${process.env['JF_GIT_COMMIT'] || 'dev'})\n`);
    return;
  }
  const loaded = await load();
  if (process.argv.includes('--print-config')) {
    process.stdout.write(`${printConfig(loaded)}\n`);
    return;
  }

  const log = createLogger({ ...loaded.settings.logging, secrets: secretValues(loaded.settings) });
  logWarnings(log);
  endOnFaults(log);
  // Install handlers before the start: without one, a signal ends the process silently, or not at all in a container.
  const reload = async (): Promise<void> => (await starting).node.certificate?.reload();
  const close = async (): Promise<void> => (await starting).node.close();
  closeOnSignals(log, { close, ...(loaded.settings.http.tls === null ? {} : { reload }) });
  for (const { variable, message } of loaded.warnings) log.warn(message, { variable });

  const starting = start(loaded.settings, log, (error) => {
    log.error('node.start_failed', { error });
    // Close in order: the node may already have rooms.
    void close()
      .catch(() => undefined)
      .then(() => exit(BAD_CONFIG));
  });
  try {
    const { settings, node } = await starting;
    logWelcome(log, { settings, ...node });
  } catch (error) {
    log.error('node.start_failed', { error });
    // Another node keeps its name, so a restart with the same settings cannot succeed.
    const isSetting =
      error instanceof ConfigError ||
      (error instanceof ClusterError && (error.code === 'HOST_UNRESOLVABLE' || error.code === 'NAME_IN_USE'));
    exit(isSetting ? BAD_CONFIG : FAILED);
  }
}

async function start(
  configured: Settings,
  log: Log,
  onRefused: (error: ClusterError) => void,
): Promise<{ settings: Settings; node: RunningNode }> {
  const settings = await withMediaAddress(await withOwnName(configured, log), log);
  // Load late to report wrong settings without waiting for the node's modules. Media workers start while those load.
  const { openEngine } = await import('./media.js');
  const limits = connectionLimits(log);
  const media = openEngine({ settings, workers: settings.mediaWorkers, log, maxRelayConnections: limits.relay });
  // `startNode` reports a failure.
  media.catch(() => undefined);
  const { startNode, stuckThreads } = await import('./node.js');
  watchStuckThreads(stuckThreads);

  return { settings, node: await startNode({ settings, log, media, onRefused, maxConnections: limits.http }) };
}

await main();
