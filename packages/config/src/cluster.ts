import { isIP } from 'node:net';
import { ConfigError, printableValue } from './errors.js';
import type { PortRange } from './grammar.js';
import type { Reader } from './reader.js';
import type { ClusterSettings, ConfigWarning } from './settings.js';

export const DEFAULT_COOKIE = 'bloom_cookie';

interface ClusterOptions {
  reader: Reader;
  hostname: string;
  warnings: ConfigWarning[];
}

/** Loads `JF_DIST_*`; null when distribution is off. With DNS, checks run in the documented order. */
export function loadCluster({ reader, hostname, warnings }: ClusterOptions): ClusterSettings | null {
  const enabled = loadEnabled(reader, warnings);
  const mode = reader.get('distMode');
  if (!enabled) return null;

  const strategy = reader.get('distStrategyName');
  if (strategy === 'DNS' && mode !== 'name') {
    throw new ConfigError(
      'JF_DIST_MODE',
      `JF_DIST_STRATEGY_NAME=DNS needs JF_DIST_MODE=name, got JF_DIST_MODE=${mode}`,
    );
  }

  const nodeName = loadNodeName(reader, { mode, strategy, hostname });
  const discovery =
    strategy === 'DNS' ? loadDns(reader, nodeName) : { strategy, nodes: loadNodes(reader, nodeName, warnings) };
  const cookie = reader.get('distCookie');

  return {
    mode,
    nodeName,
    discovery,
    cookie,
    ip: reader.read('distIp') ?? null,
    tickTimeS: reader.get('distTickTime'),
    standby: reader.get('standby'),
    portMapperPort: reader.get('epmdPort'),
    portRange: loadPortRange(reader),
  };
}

/** Only `true` enables distribution, as in the reference; other words are probably mistakes. */
function loadEnabled(reader: Reader, warnings: ConfigWarning[]): boolean {
  const given = reader.get('distEnabled');
  const word = given.toLowerCase();
  if (word !== 'true' && word !== 'false') {
    warnings.push({
      variable: 'JF_DIST_ENABLED',
      message: `JF_DIST_ENABLED=${printableValue(given, false)} is neither true nor false; distribution is off`,
    });
  }

  return word === 'true';
}

function loadNodeName(
  reader: Reader,
  { mode, strategy, hostname }: { mode: 'sname' | 'name'; strategy: string; hostname: string },
): string {
  let name = reader.read('distNodeName');
  if (name === undefined) {
    name = `bloom@${mode === 'sname' ? (hostname.split('.')[0] ?? hostname) : hostname}`;
    reader.computed('distNodeName', name);
  }

  const host = name.slice(name.indexOf('@') + 1);
  if (mode === 'sname' && host.includes('.')) {
    throw new ConfigError(
      'JF_DIST_NODE_NAME',
      `JF_DIST_NODE_NAME=${JSON.stringify(name)} has a dot in its host name, which JF_DIST_MODE=sname forbids`,
    );
  }
  if (mode === 'name' && strategy !== 'DNS' && !host.includes('.') && isIP(host) === 0) {
    throw new ConfigError(
      'JF_DIST_NODE_NAME',
      `the host name of JF_DIST_NODE_NAME=${JSON.stringify(name)} is neither a full name nor an IP address, which JF_DIST_MODE=name demands`,
    );
  }

  return name;
}

function loadNodes(reader: Reader, nodeName: string, warnings: ConfigWarning[]): readonly string[] {
  const nodes = reader.read('distNodes') ?? [];

  if (nodes.length === 0) {
    warnings.push({
      variable: 'JF_DIST_NODES',
      message: 'JF_DIST_NODES is empty on this node; at least one node of the cluster needs it',
    });
  }

  return [...new Set(nodes)].filter((node) => node !== nodeName);
}

function loadDns(reader: Reader, nodeName: string): ClusterSettings['discovery'] {
  const query = reader.read('distQuery');
  if (query === undefined) {
    throw new ConfigError('JF_DIST_QUERY', 'JF_DIST_QUERY is not set: JF_DIST_STRATEGY_NAME=DNS needs a DNS name');
  }

  try {
    return { strategy: 'DNS', query, pollingIntervalMs: reader.get('distPollingInterval') };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const hostFirst = nodeName.slice(nodeName.indexOf('@') + 1);
    throw new ConfigError(error.variable, error.message, { cause: error, hostFirst });
  }
}

function loadPortRange(reader: Reader): PortRange | null {
  const min = reader.read('distMinPort');
  const max = reader.read('distMaxPort');

  if (min === undefined) {
    if (max === undefined) return null;
    throw new ConfigError('JF_DIST_MIN_PORT', `JF_DIST_MAX_PORT=${max} is set but JF_DIST_MIN_PORT is not`);
  }
  if (max !== undefined && min > max) {
    throw new ConfigError('JF_DIST_MIN_PORT', `JF_DIST_MIN_PORT=${min} is above JF_DIST_MAX_PORT=${max}`);
  }

  return { min, max: max ?? min };
}
