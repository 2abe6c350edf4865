import { randomBytes } from 'node:crypto';
import { availableParallelism, hostname } from 'node:os';
import { ConfigError, loadConfig, printConfig, secretValues, type LoadedConfig } from '@bloom/config';
import { createLogger, type Log } from '@bloom/log';
import type { RunningNode } from './node.js';
import { logWelcome } from './welcome.js';

const FAILED = 1;
/** EX_CONFIG of sysexits.h: nothing was started, the settings are wrong. */
const BAD_CONFIG = 78;

function load(): LoadedConfig {
  try {
    return loadConfig(process.env, {
      cwd: process.cwd(),
      hostname: hostname(),
      cores: availableParallelism(),
      randomBytes,
    });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    createLogger().error(error.message, { variable: error.variable });
    process.exit(BAD_CONFIG);
  }
}

/** The first signal closes in order and ends with 0, the second one ends at once. */
function closeOnSignals(log: Log, node: RunningNode): void {
  let closing = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (closing) {
      log.warn('node.killed', { signal });
      process.exit(FAILED);
    }
    closing = true;
    log.info('node.closing', { signal });
    void node.close().then(() => {
      log.info('node.closed');
      process.exit(0);
    });
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}

/** Nobody knows what state the process is in: say so and let the supervisor start a new one. */
function endOnFaults(log: Log): void {
  const onFault = (event: string) => (error: unknown) => {
    log.error(event, { error });
    process.exit(FAILED);
  };
  process.on('uncaughtException', onFault('process.uncaught_exception'));
  process.on('unhandledRejection', onFault('process.unhandled_rejection'));
}

async function main(): Promise<void> {
  const loaded = load();
  if (process.argv.includes('--print-config')) {
    process.stdout.write(`${printConfig(loaded)}\n`);
    return;
  }

  const { settings, warnings } = loaded;
  const log = createLogger({ ...settings.logging, secrets: secretValues(loaded) });
  endOnFaults(log);
  for (const { variable, message } of warnings) log.warn(message, { variable });

  let node: RunningNode;
  try {
    // Not before the settings are known to be good: what a node is made of takes longer to load than to refuse them.
    const { startNode } = await import('./node.js');
    node = await startNode({ settings, log });
  } catch (error) {
    log.error('node.start_failed', { error });
    process.exit(FAILED);
  }
  closeOnSignals(log, node);
  logWelcome(log, { settings, ...node });
}

await main();
