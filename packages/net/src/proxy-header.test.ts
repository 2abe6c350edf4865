import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { readProxyHeader } from './proxy-header.js';

const SIGNATURE = '0d0a0d0a000d0a515549540a';

describe('PROXY protocol version 1', () => {
  test.each([
    ['PROXY TCP4 203.0.113.1 192.0.2.1 4711 443\r\n', { address: '203.0.113.1', port: 4711 }],
    ['PROXY TCP6 2001:db8::1 2001:db8::2 4711 443\r\n', { address: '2001:db8::1', port: 4711 }],
    ['PROXY UNKNOWN\r\n', undefined],
    ['PROXY UNKNOWN ffff:f::f ffff:f::f 65535 65535\r\n', undefined],
  ])('reads the client from %j', (line, client) => {
    expect(readProxyHeader(Buffer.from(`${line}GET /`))).toEqual({ byteLength: line.length, client });
  });

  test.each([
    'GET / HTTP/1.1\r\n',
    'PROXY TCP4 203.0.113.1 192.0.2.1 4711\r\n',
    'PROXY TCP4 2001:db8::1 192.0.2.1 4711 443\r\n',
    'PROXY TCP4 203.0.113.1 192.0.2.1 65536 443\r\n',
    'PROXY UDP4 203.0.113.1 192.0.2.1 4711 443\r\n',
    `PROXY TCP4 ${' '.repeat(120)}`,
  ])('rejects %j', (line) => {
    expect(readProxyHeader(Buffer.from(line))).toBe('invalid');
  });

  test('treats every prefix of a header as incomplete', () => {
    const line = Buffer.from('PROXY TCP4 203.0.113.1 192.0.2.1 4711 443\r\n');
    for (let end = 0; end < line.length; end++) expect(readProxyHeader(line.subarray(0, end))).toBe('incomplete');
  });
});

describe('PROXY protocol version 2', () => {
  test.each([
    ['IPv4', `${SIGNATURE}2111000c cb007101 c0000201 1267 01bb`, { address: '203.0.113.1', port: 4711 }],
    [
      'IPv6, with a TLV',
      `${SIGNATURE}21210029 20010db8000000000000000000000001 20010db8000000000000000000000002 1267 01bb 0400020000`,
      { address: '2001:db8:0:0:0:0:0:1', port: 4711 },
    ],
    ['LOCAL', `${SIGNATURE}20000000`, undefined],
    ['a Unix socket', `${SIGNATURE}21310002 0000`, undefined],
  ])('reads a version 2 header: %s', (_what, hex, client) => {
    const header = Buffer.from(hex.replaceAll(' ', ''), 'hex');
    const bytes = Buffer.concat([header, Buffer.from('hello')]);
    expect(readProxyHeader(bytes)).toEqual({ byteLength: header.length, client });
    for (let end = 0; end < header.length; end++) expect(readProxyHeader(bytes.subarray(0, end))).toBe('incomplete');
  });

  test.each([
    ['another version', `${SIGNATURE}11110000`],
    ['an unknown command', `${SIGNATURE}22110000`],
    ['too few bytes for its addresses', `${SIGNATURE}21110004cb007101`],
    ['an announced length of 64 KiB', `${SIGNATURE}2111ffff`],
  ])('refuses %s', (_what, hex) => {
    expect(readProxyHeader(Buffer.from(hex, 'hex'))).toBe('invalid');
  });
});

test('reads any bytes without an error, and no header longer than its input', () => {
  const begun = fc.constantFrom(Buffer.alloc(0), Buffer.from('PROXY TCP4 '), Buffer.from(`${SIGNATURE}2111`, 'hex'));
  fc.assert(
    fc.property(begun, fc.uint8Array({ maxLength: 300 }), (start, more) => {
      const bytes = Buffer.concat([start, more]);
      const header = readProxyHeader(bytes);
      const length = typeof header === 'string' ? 0 : header.byteLength;
      expect(length).toBeLessThanOrEqual(bytes.length);
    }),
    { numRuns: fuzzRuns(5_000) },
  );
});
