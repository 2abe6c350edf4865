import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { TrustedProxies } from './trusted-proxies.js';

const trusted = new TrustedProxies(['10.0.0.0/8', '192.0.2.1', 'fd00::/8']);

describe('trusted proxies', () => {
  test.each([
    ['10.255.0.1', true],
    ['11.0.0.1', false],
    ['192.0.2.1', true],
    ['192.0.2.2', false],
    ['::ffff:10.0.0.1', true],
    ['fd12::1', true],
    ['fe80::1%eth0', false],
    ['2001:db8::1', false],
    ['', false],
    ['a name', false],
  ])('decides whether %s is a trusted proxy: %s', (address, expected) => {
    expect(trusted.has(address)).toBe(expected);
  });
});

describe('the client address from X-Forwarded-For', () => {
  test.each([
    ['is that of the connection without the header', { connection: '10.0.0.1', header: undefined }, '10.0.0.1'],
    [
      'is that of the connection if it is not a proxy',
      { connection: '203.0.113.9', header: '203.0.113.1' },
      '203.0.113.9',
    ],
    ['is the only entry', { connection: '10.0.0.1', header: '203.0.113.1' }, '203.0.113.1'],
    [
      'is the last entry: a client may send the header too',
      { connection: '10.0.0.1', header: '198.51.100.1, 203.0.113.1' },
      '203.0.113.1',
    ],
    [
      'is the last that is not a proxy',
      { connection: '10.0.0.1', header: '198.51.100.1, 203.0.113.1, 10.0.0.2,192.0.2.1' },
      '203.0.113.1',
    ],
    ['is the first entry if all are proxies', { connection: '10.0.0.1', header: '10.0.0.3, 10.0.0.2' }, '10.0.0.3'],
    [
      'is never an entry before an invalid one',
      { connection: '10.0.0.1', header: '203.0.113.1, unknown, 10.0.0.2' },
      '10.0.0.2',
    ],
    ['may have a port', { connection: '10.0.0.1', header: '203.0.113.1:4711' }, '203.0.113.1'],
    ['may be an IPv6 address', { connection: '10.0.0.1', header: '2001:db8::1' }, '2001:db8::1'],
    ['may be an IPv6 address with a port', { connection: '10.0.0.1', header: '[2001:db8::1]:4711' }, '2001:db8::1'],
    ['is that of the connection if the header is empty', { connection: '10.0.0.1', header: '' }, '10.0.0.1'],
  ])('finds the client address %s', (_what, { connection, header }, expected) => {
    expect(trusted.clientOf(connection, header)).toBe(expected);
  });

  test('never returns an address that the client wrote in front of the one its proxy saw', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9a-f:., []]{0,60}$/)), (text) => {
        expect(trusted.clientOf('10.0.0.1', `${text}, 203.0.113.1`)).toBe('203.0.113.1');
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });
});
