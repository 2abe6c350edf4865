import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '@bloom/time';
import { ManualClock, until } from '@bloom/time/testing';
import { dnsStrategy, nodesList } from './index.js';
import { NameServer, testResolver } from './testing/index.js';

describe('the node list', () => {
  test('reports every name except its own, once', async () => {
    const reports: (readonly string[])[] = [];
    await nodesList({ self: 'a@h1', nodes: ['a@h1', 'b@h2'] }).start((nodes) => reports.push(nodes));
    expect(reports).toEqual([['b@h2']]);
  });
});

describe('the DNS strategy', () => {
  let dns: NameServer;
  beforeEach(async () => {
    dns = await NameServer.open();
  });
  afterEach(() => dns.close());

  /** The time limit applies to one answer: on a busy machine even a server on loopback is slow. */
  function polled(timeoutMs = 5_000) {
    const clock = new ManualClock();
    const reports: (readonly string[])[] = [];
    const warnings: string[] = [];
    const asked: string[] = [];
    return {
      clock,
      reports,
      warnings,
      asked,
      make: () => {
        const resolver = testResolver({ port: dns.port, timeoutMs, clock: systemClock });
        return dnsStrategy({
          self: 'bloom@10.0.0.1',
          query: 'sfu.internal',
          pollingIntervalMs: 5000,
          resolver: {
            addresses: (name, options) => {
              asked.push(name);
              return resolver.addresses(name, options);
            },
          },
          warn: (event) => warnings.push(event),
          clock,
        });
      },
    };
  }

  test('names the others by its own node name and each address', async () => {
    dns.set('sfu.internal', ['10.0.0.1', '10.0.0.2', '2001:db8::2']);
    const p = polled();
    const strategy = p.make();
    await strategy.start((nodes) => p.reports.push(nodes));
    expect(p.reports).toEqual([['bloom@10.0.0.2', 'bloom@2001:db8::2']]);
    strategy.stop();
    expect(p.clock.pending).toBe(0);
  });

  test('warns once that the name cannot be resolved, and keeps querying', async () => {
    const p = polled();
    const strategy = p.make();
    await strategy.start((nodes) => p.reports.push(nodes));
    p.clock.advance(4_999);
    expect(p.asked).toHaveLength(1);
    p.clock.advance(1);
    expect(p.asked).toHaveLength(2);
    expect(p.warnings).toEqual(['discovery.dns_failed']);
    dns.set('sfu.internal', ['10.0.0.7', '2001:db8::7']);
    await until(() => {
      p.clock.advance(5_000);
      return p.reports.length > 0;
    });
    expect(p.reports).toEqual([['bloom@10.0.0.7', 'bloom@2001:db8::7']]);
    expect(p.warnings).toEqual(['discovery.dns_failed']);
    strategy.stop();
  });

  test('sends one query at a time when the resolver is slower than the interval', async () => {
    dns.setBoth('sfu.internal', 'silent');
    const p = polled(150);
    const strategy = p.make();
    const first = strategy.start((nodes) => p.reports.push(nodes));
    p.clock.advance(5_000);
    p.clock.advance(5_000);
    await first;
    expect(p.asked).toHaveLength(1);
    p.clock.advance(5_000);
    expect(p.asked).toHaveLength(2);
    strategy.stop();
  });
});
