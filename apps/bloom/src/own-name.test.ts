import { expect, test } from '@jest/globals';
import { loadConfig, type ClusterSettings } from '@bloom/config';
import { silentLog, type Log } from '@bloom/log';
import { ownName } from './own-name.js';

const warnings: string[] = [];
const log: Log = { ...silentLog, warn: (event) => void warnings.push(event), child: () => log };

function settings(nodeName: string): ClusterSettings {
  const { cluster } = loadConfig(
    {
      NODE_ENV: 'test',
      JF_DIST_ENABLED: 'true',
      JF_DIST_MODE: 'name',
      JF_DIST_STRATEGY_NAME: 'DNS',
      JF_DIST_QUERY: 'bloom.internal',
      JF_DIST_NODE_NAME: nodeName,
    },
    { cwd: '/', hostname: 'host', cores: 1, randomBytes: (size) => Buffer.alloc(size) },
  ).settings;
  if (cluster === null) throw new Error('the cluster is off');

  return cluster;
}

test('a host that is an IP address is not looked up', async () => {
  expect(await ownName(settings('bloom@127.0.0.2'), log)).toBe('bloom@127.0.0.2');
  expect(warnings).toEqual([]);
});

test('a host that resolves only to this machine causes a warning, since other members cannot reach it', async () => {
  expect(await ownName(settings('bloom@localhost'), log)).toBe('bloom@127.0.0.1');
  expect(warnings).toEqual(['cluster.host_is_loopback']);
});
