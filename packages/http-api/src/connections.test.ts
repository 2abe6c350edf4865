import { createServer } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { Connections, MAX_UNSERVED_PER_NETWORK } from './connections.js';

test('all addresses of an IPv6 /64 have the share of one network', () => {
  const server = createServer();
  const connections = new Connections(server, silentLog);
  const open = (remoteAddress: string) => {
    const socket = Object.assign(new PassThrough(), { remoteAddress, remotePort: 4000 });
    server.emit('connection', socket);
    return socket;
  };
  const neighbour = open('2001:db8:0:1::1');
  const sockets = Array.from({ length: MAX_UNSERVED_PER_NETWORK + 1 }, (_, i) => open(`2001:db8::${i.toString(16)}`));
  expect(sockets.filter(({ destroyed }) => destroyed)).toEqual([sockets[0]]);
  expect(neighbour.destroyed).toBe(false);
  connections.destroy();
});
