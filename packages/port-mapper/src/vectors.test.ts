import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import { silentLog } from '@bloom/log';
import { freeTcpPort } from '@bloom/net/testing';
import { names, PortMapperServer } from './index.js';
import { alive2Request, type NodeEntry } from './protocol.js';
import { hasEpmd, say, startEpmd } from './testing/sockets.js';

// The same bytes must have the same result with the original and with ours.

const request = (body: Buffer | string): Buffer => {
  const bytes = Buffer.from(body);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
};

const node = (name: string | Buffer, changes: Partial<NodeEntry> = {}): Buffer => {
  const entry = {
    name: 'x',
    port: 5_000,
    nodeType: 77,
    protocol: 0,
    highest: 6,
    lowest: 6,
    extra: Buffer.alloc(0),
    ...changes,
  };
  const bytes = Buffer.from(name);
  const plain = alive2Request({ ...entry, name: 'x' });
  const body = Buffer.concat([
    plain.subarray(2, 11),
    Buffer.from([bytes.length >> 8, bytes.length & 255]),
    bytes,
    plain.subarray(14),
  ]);
  return request(body);
};

const servers: [string, (port: number) => Promise<{ stop(): unknown }>][] = [
  [
    'ours',
    async (port) => ({ stop: await PortMapperServer.open({ port, log: silentLog }).then((s) => () => s.close()) }),
  ],
  ['the original [needs epmd]', async (port) => startEpmd(port)],
];

describe.each(servers)('%s', (which, start) => {
  const suite = which === 'ours' || hasEpmd ? test : test.skip;
  let port: number;
  let server: { stop(): unknown } | undefined;
  const held: Socket[] = [];

  beforeAll(async () => {
    if (which !== 'ours' && !hasEpmd) return;
    port = await freeTcpPort();
    server = await start(port);
    await until(async () =>
      names({ host: '127.0.0.1', port }).then(
        () => true,
        () => false,
      ),
    );
  });
  afterAll(async () => {
    await server?.stop();
  });
  afterEach(async () => {
    for (const socket of held.splice(0)) socket.destroy();
    if (server !== undefined) await until(async () => (await names({ host: '127.0.0.1', port })).nodes.length === 0);
  });

  const register = async (bytes: Buffer, enough: number): Promise<string> => {
    const { bytes: reply, socket } = await say(port, [bytes], enough);
    held.push(socket);
    return reply.toString('hex');
  };
  const ask = async (...pieces: Buffer[]): Promise<string> => {
    const { bytes, closed, socket } = await say(port, pieces);
    socket.destroy();
    return `${bytes.toString('hex')}${closed ? '|' : ''}`;
  };
  const mapperPort = () => port.toString(16).padStart(8, '0');

  suite('gives a wide creation to version 6 and a short one to version 5', async () => {
    expect(await register(node('new'), 6)).toMatch(/^7600[0-9a-f]{8}$/);
    expect(await register(node('old', { highest: 5, lowest: 5 }), 4)).toMatch(/^7900000[123]$/);
    expect(await register(node('newer', { highest: 7, lowest: 6 }), 6)).toMatch(/^7600/);
  });

  suite('gives the same name a different creation each time', async () => {
    const seen = new Set<string>();
    for (let i = 0; i < 4; i++) {
      seen.add(await register(node('again'), 6));
      held.pop()?.destroy();
      await until(async () => (await names({ host: '127.0.0.1', port })).nodes.length === 0);
    }
    expect(seen.size).toBe(4);
  });

  suite('refuses a name that is taken', async () => {
    await register(node('taken'), 6);
    expect(await register(node('taken'), 6)).toBe('760100000063');
    expect(await register(node('taken', { highest: 5 }), 4)).toBe('79010063');
  });

  suite('returns what was registered, including the extra bytes', async () => {
    await register(node('aa', { extra: Buffer.from('xyz'), nodeType: 72, port: 1_234, lowest: 5 }), 6);
    expect(await ask(request('zaa'))).toBe('770004d248000006000500026161000378797a|');
    expect(await ask(request('zaa\0'))).toBe('770004d248000006000500026161000378797a|');
    expect(await ask(request('zab'))).toBe('7701|');
  });

  suite('lists the newest names first', async () => {
    await register(node('one'), 6);
    await register(node('two', { port: 6_000 }), 6);
    const text = 'name two at port 6000\nname one at port 5000\n';
    expect(await ask(request('n'))).toBe(`${mapperPort()}${Buffer.from(text).toString('hex')}|`);
    expect(await ask(request('nmore'))).toBe(`${mapperPort()}${Buffer.from(text).toString('hex')}|`);
  });

  suite('dumps active names before old ones', async () => {
    await register(node('gone'), 6);
    held.pop()?.destroy();
    await until(async () => (await names({ host: '127.0.0.1', port })).nodes.length === 0);
    await register(node('here'), 6);
    const dump = Buffer.from((await ask(request('d'))).replace('|', ''), 'hex').toString('latin1', 4);
    const lines = dump.split('\0').map((line) => line.replaceAll(/fd = \d+/g, 'fd = N'));
    expect(lines[0]).toBe('active name     <here> at port 5000, fd = N\n');
    expect(lines).toContain('old/unused name <gone>, port = 5000, fd = N \n');
    expect(lines.at(-1)).toBe('');
  });

  suite('accepts 255 characters as a name but not 256, and only UTF-8', async () => {
    expect(await register(node('é'.repeat(255)), 6)).toMatch(/^7600/);
    expect(await register(node('é'.repeat(256)), 6)).toBe('760100000063');
    expect(await register(node(Buffer.from([0xff, 0xfe])), 6)).toBe('760100000063');
    expect(await register(node('with@sign'), 6)).toMatch(/^7600/);
  });

  suite('accepts a registration with bytes after extra, and any type and protocol', async () => {
    expect(await register(request(Buffer.concat([node('junk').subarray(2), Buffer.from('JUNK')])), 6)).toMatch(/^7600/);
    expect(await register(node('odd', { nodeType: 50, protocol: 7 }), 6)).toMatch(/^7600/);
  });

  suite('accepts a request in pieces', async () => {
    await register(node('slow'), 6);
    const whole = request('zslow');
    expect(await ask(...[...whole].map((byte) => Buffer.from([byte])))).toMatch(/^7700/);
  });

  suite.each([
    ['an empty request', request('')],
    ['an unknown request', request('q')],
    ['a look-up without a name', request('z')],
    ['a look-up of only a NUL', request('z\0')],
    ['a look-up of bytes that are not UTF-8', request(Buffer.from([122, 0xff]))],
    ['a look-up of 256 characters', request(`z${'é'.repeat(256)}`)],
    ['a NUL inside a name', request('za\0b')],
    ['a registration without a name', node('')],
    ['a registration with a NUL in its name', node('a\0b')],
    ['a registration that ends early', request(Buffer.concat([node('cc').subarray(2, -2)]))],
    ['bytes after the declared length', Buffer.concat([request('n'), Buffer.from('x')])],
    ['a stop request', request('sx')],
  ])('closes without a reply after %s', async (_, bytes) => {
    expect(await ask(bytes)).toBe('|');
  });

  suite('does not exit on request while a node is registered', async () => {
    await register(node('alive'), 6);
    expect(await ask(request('k'))).toBe('4e4f|');
  });

  suite('drops a name immediately when its connection sends anything more', async () => {
    await register(node('talker'), 6);
    const [socket] = held;
    const closed = new Promise((resolve) => socket?.once('close', resolve));
    socket?.write('x');
    socket?.end();
    await closed;
    expect(await ask(request('ztalker'))).toBe('7701|');
  });

  suite('drops a name immediately when its connection is reset', async () => {
    await register(node('reset'), 6);
    held[0]?.resetAndDestroy();
    await until(async () => (await ask(request('zreset'))) === '7701|', 1_000);
  });

  suite('answers a client that half-closes after its request', async () => {
    const { bytes, socket } = await new Promise<{ bytes: Buffer; socket: Socket }>((resolve) => {
      void import('node:net').then(({ connect }) => {
        const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
        client.end(request('n'));
        client.once('data', (data) => resolve({ bytes: data, socket: client }));
      });
    });
    socket.destroy();
    expect(bytes.toString('hex')).toBe(mapperPort());
  });
});
