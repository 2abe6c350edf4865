import { closeSync, openSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { fuzzRuns, ManualClock } from '@bloom/time/testing';
import fc from 'fast-check';
import { machineFiles } from '../testing/index.js';
import { parseHostsFile } from './hosts-file.js';
import { MachineFiles } from './machine-files.js';
import { candidateNames, parseResolvConf } from './resolv-conf.js';

describe('resolv.conf', () => {
  test('reads the options, comments and limits of resolv.conf', () => {
    const text =
      '# comment\nnameserver 1.1.1.1 ; x\nnameserver 2.2.2.2\nnameserver 3.3.3.3\nnameserver 4.4.4.4\nsearch a b\noptions ndots:3 timeout:2 attempts:9 rotate';
    expect(parseResolvConf(text)).toEqual({
      nameservers: ['1.1.1.1', '2.2.2.2', '3.3.3.3'],
      search: ['a', 'b'],
      ndots: 3,
      timeoutMs: 2000,
      attempts: 5,
    });
  });

  test('never throws on any content of resolv.conf', () => {
    const number = fc.constantFrom('', '-1', '0', '7', '99', '1e9', 'x');
    const option = fc
      .tuple(fc.constantFrom('ndots:', 'timeout:', 'attempts:', ''), number)
      .map((parts) => parts.join(''));
    const value = fc.oneof(option, fc.constantFrom('10.0.0.1', '.', '# x'), fc.string({ maxLength: 8 }));
    const keyword = fc.constantFrom('nameserver', 'search', 'domain', 'options', '', 'sortlist');
    const line = fc
      .tuple(keyword, fc.array(value, { maxLength: 6 }))
      .map(([word, values]) => [word, ...values].join(' '));
    const text = fc.array(fc.oneof(line, fc.string({ maxLength: 40 })), { maxLength: 20 });
    const options = new Set<string>();
    fc.assert(
      fc.property(text, fc.string({ maxLength: 40 }), (lines, name) => {
        const config = parseResolvConf(lines.join('\n'));
        expect(config.nameservers.length).toBeGreaterThan(0);
        expect(config.nameservers.length).toBeLessThanOrEqual(3);
        expect(config.ndots).toBeLessThanOrEqual(15);
        expect(config.timeoutMs).toBeGreaterThanOrEqual(1_000);
        expect(config.timeoutMs).toBeLessThanOrEqual(30_000);
        expect(config.attempts).toBeLessThanOrEqual(5);
        expect(candidateNames(name, config).length).toBeGreaterThan(0);
        const { nameservers, search, ndots, timeoutMs, attempts } = config;
        if (nameservers[0] !== '127.0.0.1') options.add('nameserver');
        if (search.length > 0) options.add('search');
        if (ndots !== 1) options.add('ndots');
        if (timeoutMs !== 5_000) options.add('timeout');
        if (attempts !== 2) options.add('attempts');
      }),
      { numRuns: fuzzRuns(10_000) },
    );
    expect([...options].toSorted()).toEqual(['attempts', 'nameserver', 'ndots', 'search', 'timeout']);
  });

  test('tries a name with enough dots unchanged first, and an absolute one only unchanged', () => {
    expect(candidateNames('a.b', { search: ['x'], ndots: 1 })).toEqual(['a.b', 'a.b.x']);
    expect(candidateNames('a', { search: ['x'], ndots: 1 })).toEqual(['a.x', 'a']);
    expect(candidateNames('a.', { search: ['x'], ndots: 1 })).toEqual(['a']);
  });

  test('skips name servers that are not addresses, since they would have to be resolved first', () => {
    expect(parseResolvConf('nameserver ns.test\nnameserver fe80::1%eth0').nameservers).toEqual(['fe80::1%eth0']);
  });

  test("searches the machine's domain unless a line says otherwise", () => {
    expect(parseResolvConf('', 'node-1.internal.test').search).toEqual(['internal.test']);
    expect(parseResolvConf('search', 'node-1.internal.test').search).toEqual(['internal.test']);
    expect(parseResolvConf('search a', 'node-1.internal.test').search).toEqual(['a']);
    expect(parseResolvConf('', 'node-1').search).toEqual([]);
  });
});

test('reads files that could not be opened at the next check, and keeps their contents until then', () => {
  const machine = machineFiles('nameserver 10.0.0.53\n', '10.0.0.1 box\n');
  const clock = new ManualClock();
  const early = new MachineFiles({ ...machine, clock });
  const late = new MachineFiles({ ...machine, clock });
  const before = late.read();
  machine.write('resolvConf', 'nameserver 10.0.0.54\nnameserver 10.0.0.55\n');
  clock.advance(2_000);
  const [first, kept] = withoutDescriptors(() => [early.read(), late.read()]);
  try {
    expect(first?.config.nameservers).toEqual(['127.0.0.1']);
    expect(kept?.config).toBe(before.config);
    expect(kept?.hosts).toBe(before.hosts);
    clock.advance(2_000);
    expect(early.read().config.nameservers).toEqual(['10.0.0.54', '10.0.0.55']);
    expect(early.read().hosts.get('box')).toEqual(['10.0.0.1']);
    expect(late.read().config.nameservers).toEqual(['10.0.0.54', '10.0.0.55']);
  } finally {
    machine.remove();
  }
});

/** Returns the result of `work`, run while this process has as many files open as it may. */
function withoutDescriptors<T>(work: () => T): T {
  const open: number[] = [];
  try {
    for (;;) open.push(openSync('/dev/null', 'r'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EMFILE') throw error;

    return work();
  } finally {
    for (const file of open) closeSync(file);
  }
}

describe('the hosts file', () => {
  test('gives each name its addresses, IPv4 first', () => {
    const hosts = parseHostsFile(
      '# names\n::1 localhost ip6-localhost\n127.0.0.1\tLOCALHOST # here\nnonsense x\n10.0.0.1\n',
    );
    expect([...hosts]).toEqual([
      ['localhost', ['127.0.0.1', '::1']],
      ['ip6-localhost', ['::1']],
    ]);
  });

  test('reads up to 20,000 pairs', () => {
    const text = Array.from({ length: 30_000 }, (_, at) => `10.0.0.1 host${at}`).join('\n');
    expect(parseHostsFile(text).size).toBe(20_000);
  });

  test('lists IPv4 first even in a file that is too long', () => {
    const text = `::1 box\n127.0.0.1 box\n${'10.0.0.1 other\n'.repeat(20_000)}`;
    expect(parseHostsFile(text).get('box')).toEqual(['127.0.0.1', '::1']);
  });

  test('accepts any content', () => {
    const word = fc.oneof(fc.constantFrom('10.0.0.1', '::1', 'a', '__proto__', '#'), fc.string({ maxLength: 6 }));
    const lines = fc.array(fc.array(word, { maxLength: 5 }).map((words) => words.join(' ')));
    fc.assert(
      fc.property(lines, (text) => {
        const hosts = parseHostsFile(text.join('\n'));
        expect([...hosts.values()].every((addresses) => addresses.length > 0)).toBe(true);
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });
});
