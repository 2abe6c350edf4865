import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { ownUdpSockets, parseUdpTable } from './udp-sockets.js';

const HEAD =
  '   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n';

describe('the table of UDP sockets', () => {
  test('reads addresses, queues and drops', () => {
    const table = `${HEAD}  373: 0100007F:C001 00000000:0000 07 00000000:00000900 00:00000000 00000000     0        0 4711 2 0000 17
  374: 00000000000000000000000001000000:C002 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000  0 0 4712 2 0000 0
  375: 0000000000000000FFFF00000100007F:C003 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000  0 0 4713 2 0000 0
`;
    expect(parseUdpTable(table)).toEqual([
      { address: '127.0.0.1', port: 49_153, queuedBytes: 0x900, drops: 17, inode: '4711' },
      { address: '::1', port: 49_154, queuedBytes: 0, drops: 0, inode: '4712' },
      { address: '127.0.0.1', port: 49_155, queuedBytes: 0, drops: 0, inode: '4713' },
    ]);
  });

  test('accepts any text', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(fc.string({ unit: fc.constantFrom('0', 'F', ':', ' ', '\n') })),
        (text, parts) => {
          for (const { port, drops } of parseUdpTable(HEAD + text + parts.join(' '))) {
            expect(Number.isSafeInteger(port) && Number.isSafeInteger(drops)).toBe(true);
          }
        },
      ),
      { numRuns: fuzzRuns(2_000) },
    );
  });

  (process.platform === 'linux' ? test : test.skip)(
    'reports the sockets of this process and no others [needs linux]',
    async () => {
      const socket = createSocket('udp4').bind(0, '127.0.0.1');
      await once(socket, 'listening');
      const { port } = socket.address();
      const own = await ownUdpSockets();
      expect(own?.filter((each) => each.port === port)).toEqual([
        { address: '127.0.0.1', port, queuedBytes: 0, drops: 0 },
      ]);
      socket.close();
      await once(socket, 'close');
      expect((await ownUdpSockets())?.some((each) => each.port === port)).toBe(false);
    },
  );

  test('returns null where the system has no table', async () => {
    expect(await ownUdpSockets('/nowhere')).toBeNull();
  });
});
