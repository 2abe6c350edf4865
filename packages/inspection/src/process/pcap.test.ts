import { describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { fileHeader, record } from './pcap.js';

const header = Buffer.from('8060000100000002000000030', 'hex');
const peer = { address: '203.0.113.9', port: 61_022 };
const server = { address: '10.0.0.12', port: 50_112 };

const hasTcpdump = spawnSync('tcpdump', ['--version']).status === 0;
// oxlint-disable-next-line no-console
if (!hasTcpdump) console.warn('SKIPPED: a test against tcpdump; install it with: apt-get install tcpdump');

describe('capture files', () => {
  (hasTcpdump ? test : test.skip)('tcpdump reads the RTP packets of a capture file [needs tcpdump]', () => {
    const at = { atMs: 1_700_000_000_123.456, shown: header.subarray(0, 12), length: 1_000 };
    const v6 = { from: { address: '2001:db8::9', port: 5_000 }, to: { address: '2001:db8::1', port: 6_000 } };
    const file = Buffer.concat([
      fileHeader(),
      record({ ...at, from: peer, to: server }),
      record({ ...at, from: server, to: peer }),
      record({ ...at, ...v6 }),
    ]);
    const { stdout } = spawnSync('tcpdump', ['-r', '-', '-n', '-tt', '-T', 'rtp', '-v'], { input: file });
    const text = stdout.toString();
    expect(text).toContain('1700000000.123456 IP');
    expect(text).toContain('203.0.113.9.61022 > 10.0.0.12.50112: udp/rtp 988 c96  1 2 3');
    expect(text).toContain('10.0.0.12.50112 > 203.0.113.9.61022: udp/rtp 988 c96  1 2 3');
    expect(text).toContain('2001:db8::9.5000 > 2001:db8::1.6000: udp/rtp 988 c96  1 2 3');
    expect(text).not.toContain('bad cksum');
  });

  test('starts with the classic header: microseconds, raw IP', () => {
    expect(fileHeader().toString('hex')).toBe('d4c3b2a1020004000000000000000000ffff000065000000');
  });

  test('writes a record with IP and UDP headers and the original length, cut after the RTP header', () => {
    const bytes = record({ atMs: 1_700_000_000_123.456, from: peer, to: server, shown: header, length: 1_000 });
    expect(bytes.readUInt32LE(0)).toBe(1_700_000_000);
    expect(bytes.readUInt32LE(4)).toBe(123_456);
    expect(bytes.readUInt32LE(8)).toBe(28 + header.length);
    expect(bytes.readUInt32LE(12)).toBe(1_028);
    const ip = bytes.subarray(16, 36);
    expect(ip[0]).toBe(0x45);
    expect(ip.readUInt16BE(2)).toBe(1_028);
    expect(ip[9]).toBe(17);
    expect([...ip.subarray(12, 20)]).toEqual([203, 0, 113, 9, 10, 0, 0, 12]);
    let sum = 0;
    for (let at = 0; at < 20; at += 2) sum += ip.readUInt16BE(at);
    expect(((sum & 0xff_ff) + (sum >>> 16)) & 0xff_ff).toBe(0xff_ff);
    const udp = bytes.subarray(36, 44);
    expect(udp.readUInt16BE(0)).toBe(61_022);
    expect(udp.readUInt16BE(2)).toBe(50_112);
    expect(udp.readUInt16BE(4)).toBe(1_008);
    expect(bytes.subarray(44)).toEqual(header);
  });

  test.each([
    ['2001:db8::1', '20010db8000000000000000000000001'],
    ['::', '00000000000000000000000000000000'],
    ['fe80::1:2%eth0', 'fe800000000000000000000000010002'],
    ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
    ['::ffff:10.0.0.1', '00000000000000000000ffff0a000001'],
  ])('writes the IPv6 address %s', (address, hex) => {
    const bytes = record({ atMs: 0, from: { address, port: 1 }, to: server, shown: header, length: 50 });
    expect(bytes.subarray(24, 40).toString('hex')).toBe(hex);
    // The other end of the same path has the same family.
    expect(bytes.subarray(40, 56).toString('hex')).toBe('00000000000000000000ffff0a00000c');
    expect(bytes.readUInt32LE(12)).toBe(40 + 8 + 50);
  });

  test('writes zeros for text that is not an address', () => {
    const bytes = record({ atMs: 0, from: { address: 'name', port: 1 }, to: server, shown: header, length: 50 });
    expect([...bytes.subarray(28, 32)]).toEqual([0, 0, 0, 0]);
  });
});
