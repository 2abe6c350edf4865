import { expect, test } from '@jest/globals';
import { loadConfig, type ClusterSettings } from '@bloom/config';
import { silentLog, type Log } from '@bloom/log';
import { NameServer, testResolver } from '@bloom/discovery/testing';
import { ManualClock, until } from '@bloom/time/testing';
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

test('does not look up a host that is an IP address', async () => {
  expect(await ownName(settings('bloom@127.0.0.2'), log)).toBe('bloom@127.0.0.2');
  expect(warnings).toEqual([]);
});

test('warns of a host that resolves only to this machine, since other members cannot reach it', async () => {
  expect(await ownName(settings('bloom@localhost'), log)).toBe('bloom@127.0.0.1');
  expect(warnings).toEqual(['cluster.host_is_loopback']);
});

test('prefers IPv4 for a host even if the name server answers more slowly for it', async () => {
  const dns = await NameServer.open();
  dns.set('node-7.test', ['10.0.0.7', 'fd00::7']);
  const address = dns.table.get('A node-7.test');
  dns.table.set('A node-7.test', 'silent');
  const clock = new ManualClock();
  const resolvConf = 'nameserver 127.0.0.1\noptions timeout:1\n';
  const found = ownName(settings('bloom@node-7.test'), log, testResolver({ port: dns.port, clock, resolvConf }));
  await until(() => dns.asked.includes('A node-7.test'));
  dns.table.set('A node-7.test', address!);
  // The question is repeated after 1 s.
  await until(() => {
    if (clock.now() < 1_000) clock.advance(50);
    return dns.asked.filter((question) => question === 'A node-7.test').length === 2;
  });
  expect(await found).toBe('bloom@10.0.0.7');
  await dns.close();
});

test.each([
  ['IPv4 where the members have both families', ['10.0.0.1', 'fd00::1'], '10.0.0.7'],
  ['IPv6 where the members have nothing else', ['fd00::1'], 'fd00::7'],
  ['IPv4 while there are no members', [], '10.0.0.7'],
])('uses %s for a host with both families', async (_, members, address) => {
  const dns = await NameServer.open();
  dns.set('node-7.test', ['10.0.0.7', 'fd00::7']);
  dns.set('bloom.internal', members);
  const resolver = testResolver({ port: dns.port });
  expect(await ownName(settings('bloom@node-7.test'), log, resolver)).toBe(`bloom@${address}`);
  await dns.close();
});
