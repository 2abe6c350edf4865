// A node that may open few files, and strangers who take every connection.
import { connect, type Socket } from 'node:net';
import { expect, jest, test } from '@jest/globals';
import { until } from '../cluster/until.js';
import { apiToken } from '../harness/bloom-node.js';
import { freePorts, runProgram } from './support/program.js';

jest.setTimeout(120_000);

/** Descriptors of the node, and connections of strangers from 200 networks. */
const FILES = 256;
const STRANGERS = 2 * FILES;

test('a node with few descriptors keeps serving its backend beside strangers who want all, and logs both', async () => {
  const { port, env } = await freePorts();
  const limited = ['sh', '-c', `ulimit -n ${FILES} && exec "$0" "$@"`];
  const node = runProgram(env, [], limited);
  const held: Socket[] = [];
  try {
    await node.says('The API is described at');
    expect(node.output()).toMatch(new RegExp(`node\\.few_descriptors files=${FILES} .*fix=`));
    for (let at = 0; at < STRANGERS; at++) {
      const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.1.${1 + (at % 200)}` });
      socket.on('error', () => undefined).resume();
      // Each asks once, so that it counts as served, and stays.
      socket.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
      held.push(socket);
    }
    const api = async (method: string, path: string, body?: object): Promise<number> => {
      const headers = { authorization: `Bearer ${apiToken}`, 'content-type': 'application/json', connection: 'close' };
      const signal = AbortSignal.timeout(10_000);
      const request = { method, headers, signal, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };

      return (await fetch(`http://127.0.0.1:${port}${path}`, request)).status;
    };
    await until('the line about refused connections', () => node.output().includes('http.connection_refused'));
    // Idle connections make room, but not in the moment in which all are new.
    await until('a room', async () => (await api('POST', '/room', { roomId: 'one', videoCodec: 'h264' })) === 201);
    expect(await api('POST', '/room/one/peer', { type: 'webrtc' })).toBe(201);
    // Its process takes descriptors of its own.
    expect(await api('POST', '/room/one/component', { type: 'hls', options: {} })).toBe(201);
    expect(node.output()).not.toContain('EMFILE');
  } finally {
    for (const socket of held) socket.destroy();
    await node.dispose();
  }
});
