import { getMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, request as httpRequest } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { ManualClock, until } from '@bloom/time/testing';
import { NameServer, testResolver } from '../testing/index.js';
import { connectTcp, openAgents } from './connect.js';
import { inRacingOrder, race } from './race.js';

test('orders addresses with the families alternating', () => {
  expect(inRacingOrder(['10.0.0.1', '10.0.0.2', '10.0.0.3', '::a'])).toEqual([
    '::a',
    '10.0.0.1',
    '10.0.0.2',
    '10.0.0.3',
  ]);
  expect(inRacingOrder(['10.0.0.1', '::a', '::b'], 4)).toEqual(['10.0.0.1', '::a', '::b']);
});

describe('a race', () => {
  /** Attempts that the test settles itself. */
  function racing(candidates: readonly string[]) {
    const clock = new ManualClock();
    const attempts = new Map<string, { win: () => void; fail: () => void; signal: AbortSignal }>();
    const discarded: string[] = [];
    const abort = new AbortController();
    const result = race({
      candidates,
      attempt: (candidate, signal) =>
        new Promise<string>((win, fail) =>
          attempts.set(candidate, { win: () => win(candidate), fail: () => fail(new Error(candidate)), signal }),
        ),
      discard: (late) => void discarded.push(late),
      signal: abort.signal,
      clock,
    });
    return { clock, attempts, discarded, abort, result, started: () => [...attempts.keys()] };
  }

  test('starts an attempt every 250 ms, and continues all of them until one has won', async () => {
    const { clock, attempts, discarded, result, started } = racing(['a', 'b', 'c']);
    expect(started()).toEqual(['a']);
    clock.advance(249);
    expect(started()).toEqual(['a']);
    clock.advance(1);
    expect(started()).toEqual(['a', 'b']);
    attempts.get('a')!.win();
    expect(await result).toBe('a');
    expect(attempts.get('b')!.signal.aborted).toBe(true);
    attempts.get('b')!.win();
    await until(() => discarded.length === 1);
    expect(started()).toEqual(['a', 'b']);
    expect(clock.pending).toBe(0);
  });

  test('starts the next attempt as soon as one has failed, and reports the first failure', async () => {
    const { clock, attempts, result, started } = racing(['a', 'b']);
    attempts.get('a')!.fail();
    await until(() => started().length === 2);
    attempts.get('b')!.fail();
    await expect(result).rejects.toThrow('a');
    expect(clock.pending).toBe(0);
  });

  test('tries at most 16 candidates', () => {
    const { attempts, clock, started } = racing(Array.from({ length: 40 }, (_, at) => String(at)));
    for (let delay = 0; delay < 40; delay += 1) clock.advance(250);
    expect(started()).toHaveLength(16);
    // More than ten would cause a warning.
    expect(getMaxListeners(attempts.get('0')!.signal)).toBe(16);
  });

  test('ends when it is aborted', async () => {
    const { clock, attempts, abort, result } = racing(['a', 'b']);
    abort.abort(new Error('enough'));
    await expect(result).rejects.toThrow('enough');
    expect(attempts.get('a')!.signal.aborted).toBe(true);
    expect(clock.pending).toBe(0);
  });
});

describe('a connection to a name', () => {
  let dns: NameServer;
  const closing: (() => void)[] = [];
  beforeEach(async () => {
    dns = await NameServer.open();
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) close();
    await dns.close();
  });

  async function listen(): Promise<number> {
    const server = createTcpServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
    closing.push(() => server.close());
    await new Promise((done) => server.once('listening', done));
    return (server.address() as AddressInfo).port;
  }

  test('reaches the address that accepts, whichever others refuse', async () => {
    const port = await listen();
    dns.set('sfu.test', ['127.0.0.1', '127.0.0.2', '::1']);
    const socket = await connectTcp({ host: 'sfu.test', port, resolver: testResolver({ port: dns.port }) });
    expect(socket.remoteAddress).toBe('127.0.0.1');
    socket.destroy();
  });

  test('fails with the reason of the first address, or of the name', async () => {
    const resolver = testResolver({ port: dns.port });
    dns.set('sfu.test', ['127.0.0.1', '127.0.0.2']);
    await expect(connectTcp({ host: 'sfu.test', port: 1, resolver })).rejects.toMatchObject({
      code: 'ECONNREFUSED',
      address: '127.0.0.1',
    });
    await expect(connectTcp({ host: 'gone.test', port: 1, resolver })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('sends what a request writes in pieces without delay', async () => {
    const setNoDelay = jest.spyOn(Socket.prototype, 'setNoDelay');
    dns.set('sfu.test', ['127.0.0.1']);
    const port = await listen();
    const socket = await connectTcp({ host: 'sfu.test', port, resolver: testResolver({ port: dns.port }) });
    const isUndelayed = setNoDelay.mock.contexts.includes(socket);
    setNoDelay.mockRestore();
    socket.destroy();
    expect(isUndelayed).toBe(true);
  });

  test('gives up the connection once its request is over, or its agents are destroyed', async () => {
    // Addresses for documentation (RFC 5737): attempts neither succeed nor fail.
    const silent: Socket[] = [];
    const attempt = jest.spyOn(Socket.prototype, 'connect').mockImplementation(function (this: Socket) {
      silent.push(this);
      return this;
    });
    const resolver = testResolver({ port: dns.port, hosts: '192.0.2.1 hook.test\n' });
    const agents = openAgents({ keepAlive: true }, resolver);
    const over = new AbortController();
    const ask = (options: object): void => {
      const request = httpRequest({ host: 'hook.test', agent: agents.http, ...options });
      request.on('error', () => undefined).end();
    };
    try {
      ask({ ended: over.signal });
      ask({});
      await until(() => silent.length === 2);
      over.abort();
      expect(silent.map(({ destroyed }) => destroyed)).toEqual([true, false]);
      agents.destroy();
      expect(silent[1]?.destroyed).toBe(true);
    } finally {
      attempt.mockRestore();
      for (const socket of silent) socket.destroy();
    }
  });

  test('is limited in number while it connects, and frees its place for the next one if it fails', async () => {
    const silent: Socket[] = [];
    const attempt = jest.spyOn(Socket.prototype, 'connect').mockImplementation(function (this: Socket) {
      silent.push(this);
      return this;
    });
    const resolver = testResolver({ port: dns.port, hosts: '192.0.2.1 store.test\n' });
    const agents = openAgents({ keepAlive: true, maxSockets: 5 }, resolver);
    const failures: string[] = [];
    try {
      for (let at = 0; at < 40; at++) {
        const request = httpRequest({ host: 'store.test', agent: agents.http });
        request.on('error', (error) => failures.push(error.message)).end();
      }
      await until(() => silent.length === 5);
      await new Promise((done) => setImmediate(done));
      expect(silent).toHaveLength(5);
      for (let at = 0; at < 40; at++) {
        await until(() => silent.length > at);
        silent[at]?.destroy(new Error('refused'));
      }
      await until(() => failures.length === 40);
      expect(new Set(failures)).toEqual(new Set(['refused']));
    } finally {
      agents.destroy();
      attempt.mockRestore();
      for (const socket of silent) socket.destroy();
    }
  });

  test('is shared by more requests than there may be connections, whether it is kept or not', async () => {
    const server = createServer((_, response) => void setImmediate(() => response.end())).listen(0, '127.0.0.1');
    await new Promise((done) => server.once('listening', done));
    let most = 0;
    server.on('connection', () =>
      server.getConnections((_, count) => {
        most = Math.max(most, count);
      }),
    );
    const { port } = server.address() as AddressInfo;
    for (const keepAlive of [true, false]) {
      const agents = openAgents({ keepAlive, maxSockets: 3 });
      const answers = Array.from({ length: 30 }, (_, at) => {
        return new Promise<string>((done) => {
          const request = httpRequest({ host: '127.0.0.1', port, agent: agents.http }, (response) => {
            response.resume().on('end', () => done('answered'));
          });
          request.on('error', () => done('failed')).end();
          if (at % 5 === 4) request.destroy();
        });
      });
      const outcomes = await Promise.all(answers);
      expect(outcomes.filter((outcome) => outcome === 'answered')).toHaveLength(24);
      agents.destroy();
    }
    // Those of the first round may still be closing in the second.
    expect(most).toBeLessThanOrEqual(3 + 3);
    server.closeAllConnections();
    server.close();
  });

  test('keeps the connection in the agent for the next request', async () => {
    const ports = new Set<number | undefined>();
    const server = createServer((request, response) => {
      ports.add(request.socket.remotePort);
      response.end(request.headers.host);
    }).listen(0, '127.0.0.1');
    await new Promise((done) => server.once('listening', done));
    const { port } = server.address() as AddressInfo;
    dns.set('hook.test', ['127.0.0.1', '::1']);
    const agents = openAgents({ keepAlive: true }, testResolver({ port: dns.port }));
    const ask = (host: string): Promise<number | string> =>
      new Promise((done) => {
        const request = httpRequest({ host, port, agent: agents.http }, (response: IncomingMessage) => {
          response.resume().on('end', () => done(response.statusCode ?? 0));
        });
        request.on('error', (error) => done(error.message)).end();
      });
    try {
      expect(await ask('hook.test')).toBe(200);
      expect(await ask('hook.test')).toBe(200);
      expect(ports.size).toBe(1);
      expect(await ask('gone.test')).toBe('gone.test has no address');
    } finally {
      agents.destroy();
      server.closeAllConnections();
      server.close();
    }
  });
});
