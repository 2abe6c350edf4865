import { once } from 'node:events';
import { createConnection } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import type { SipMessage } from '../message.js';
import { parseMessage, writeMessage } from '../message.js';
import { SipTransport } from './sip-transport.js';
import type { Target } from './target.js';

const message = (id: string, body = '') =>
  parseMessage(
    Buffer.from(`OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nCall-ID: ${id}\r\n\r\n${body}`),
  );

async function open(clock?: ManualClock) {
  const received: { id: string | undefined; source: Target }[] = [];
  const failures: Target[] = [];
  const waiting: (() => void)[] = [];
  const wake = () => {
    for (const go of waiting.splice(0)) go();
  };
  const transport = await SipTransport.open({
    address: '127.0.0.1',
    ...(clock === undefined ? {} : { clock }),
    onMessage: (arrived: SipMessage, source) => {
      received.push({ id: arrived.headers.get('Call-ID'), source });
      wake();
    },
    onFailure: (target) => {
      failures.push(target);
      wake();
    },
  });
  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise<void>((go) => waiting.push(go));
  };
  return { transport, received, failures, until };
}

const at = (transport: 'UDP' | 'TCP', port: number): Target => ({ transport, host: '127.0.0.1', port });

describe('a SIP transport', () => {
  test.each(['UDP', 'TCP'] as const)('carries messages both ways over %s on one port', async (name) => {
    const [a, b] = [await open(), await open()];
    try {
      a.transport.send(message('there', 'x'.repeat(1000)), at(name, b.transport.port));
      await b.until(() => b.received.length === 1);
      const { id, source } = b.received[0] as { id: string; source: Target };
      expect(id).toBe('there');
      expect(source.transport).toBe(name);
      // Back to its source, which over TCP means the same connection.
      b.transport.send(message('back'), source);
      await a.until(() => a.received.length === 1);
      expect(a.received[0]).toEqual({ id: 'back', source: at(name, b.transport.port) });
    } finally {
      await a.transport.close();
      await b.transport.close();
      await b.transport.close();
    }
  });

  test('has room for its own connections while strangers only connect', async () => {
    const [phone, provider] = [await open(), await open()];
    const strangers = Array.from({ length: 120 }, () => createConnection(phone.transport.port, '127.0.0.1'));
    try {
      for (const stranger of strangers) stranger.on('error', () => {});
      await Promise.all(strangers.slice(100).map((stranger) => once(stranger, 'close')));
      phone.transport.send(message('out'), at('TCP', provider.transport.port));
      await Promise.race([
        provider.until(() => provider.received.length === 1),
        phone.until(() => phone.failures.length > 0),
      ]);
      expect(provider.received).toHaveLength(1);
      expect(phone.failures).toEqual([]);
    } finally {
      for (const stranger of strangers) stranger.destroy();
      await phone.transport.close();
      await provider.transport.close();
    }
  });

  test('keeps an incoming connection open once it has carried a message, and closes a silent one', async () => {
    const clock = new ManualClock();
    const { transport, received, until } = await open(clock);
    const [provider, silent] = [0, 0].map(() => createConnection(transport.port, '127.0.0.1'));
    try {
      await Promise.all([once(provider!, 'connect'), once(silent!, 'connect')]);
      provider!.write(writeMessage(message('INVITE')));
      await until(() => received.length === 1);
      clock.advance(10_000);
      await once(silent!, 'close');
      provider!.write(writeMessage(message('BYE')));
      await Promise.race([until(() => received.length === 2), once(provider!, 'close')]);
      expect(received.map(({ id }) => id)).toEqual(['INVITE', 'BYE']);
    } finally {
      for (const socket of [provider, silent]) socket!.destroy();
      await transport.close();
    }
  });

  test('ignores noise and keep-alives over UDP', async () => {
    const [a, b] = [await open(), await open()];
    try {
      a.transport.keepAlive(at('UDP', b.transport.port));
      a.transport.send({ ...message('bad'), method: 'O K' } as SipMessage, at('UDP', b.transport.port));
      a.transport.send(message('good'), at('UDP', b.transport.port));
      await b.until(() => b.received.length > 0);
      expect(b.received.map((entry) => entry.id)).toEqual(['good']);
    } finally {
      await a.transport.close();
      await b.transport.close();
    }
  });

  test('reports a hop with an invalid port and sends nothing', async () => {
    const a = await open();
    try {
      for (const port of [0, 99_999]) {
        a.transport.send(message('nowhere'), at('UDP', port));
        a.transport.send(message('nowhere'), at('TCP', port));
      }
      await a.until(() => a.failures.length === 4);
      expect(a.failures.map(({ port }) => port)).toEqual([0, 0, 99_999, 99_999]);
    } finally {
      await a.transport.close();
    }
  });

  test('reports a hop that refuses or drops connections', async () => {
    const [a, b] = [await open(), await open()];
    const { port } = b.transport;
    try {
      a.transport.send(message('one'), at('TCP', port));
      await b.until(() => b.received.length === 1);
      await b.transport.close();
      await a.until(() => a.failures.length === 1);
      a.transport.send(message('two'), at('TCP', port));
      await a.until(() => a.failures.length === 2);
      expect(a.failures).toEqual([at('TCP', port), at('TCP', port)]);
    } finally {
      await a.transport.close();
    }
  });

  test('answers pings over TCP, and closes the connection on garbage', async () => {
    const { transport, received } = await open();
    const socket = createConnection(transport.port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      socket.write('\r\n\r\n');
      const [pong] = (await once(socket, 'data')) as [Buffer];
      expect(pong.toString()).toBe('\r\n');
      socket.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n');
      await once(socket, 'close');
      expect(received).toEqual([]);
    } finally {
      socket.destroy();
      await transport.close();
    }
  });

  test('refuses to open on an address that is not local', async () => {
    const opening = SipTransport.open({ address: '192.0.2.1', onMessage: () => {}, onFailure: () => {} });
    await expect(opening).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' });
  });
});
