import { runInThisContext } from 'node:vm';
import { setFlagsFromString } from 'node:v8';
import { once } from 'node:events';
import { createSocket } from 'node:dgram';
import { expect, test } from '@jest/globals';
import { createCertificate } from '../dtls/certificate.js';
import { warmUpJoins, asReceived } from './warm-up-joins.js';

test('gives every warm-up client its data channels', async () => {
  expect(await warmUpJoins(await createCertificate(), 5)).toBe(5);
});

test('returns a copy with the hidden class of a datagram received from a socket', async () => {
  setFlagsFromString('--allow-natives-syntax');
  const sameHiddenClass = runInThisContext('(one, other) => %HaveSameMap(one, other)') as (
    ...both: [unknown, unknown]
  ) => boolean;
  const bytes = Buffer.from('datagram');
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  socket.send(bytes, socket.address().port, '127.0.0.1');
  const [received] = (await once(socket, 'message')) as [Buffer];
  socket.close();

  expect(received).toEqual(bytes);
  expect(asReceived(bytes)).toEqual(bytes);
  expect(sameHiddenClass(received, asReceived(bytes))).toBe(true);
  expect(sameHiddenClass(received, bytes)).toBe(false);
});
