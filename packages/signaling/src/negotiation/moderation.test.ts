import { beforeEach, describe, expect, test } from '@jest/globals';
import { peerEndpoint, ScriptedClient } from '../testing/scripted-client.js';

let client: ScriptedClient;

/** The client has joined and publishes a camera and a microphone. */
beforeEach(async () => {
  client = new ScriptedClient().join(peerEndpoint('a'));
  client.publish('me:v', 'video');
  client.publish('me:a', 'audio');
  client.custom('renegotiateTracks');
  await client.cycle();
  client.heard();
  client.asked();
});

const inbound = (): string[] => client.negotiation.inbound.map(({ trackId }) => trackId);

describe('permissions to publish', () => {
  test('makes the m-line of a kind inactive while its permission is revoked, from the next offer on', async () => {
    client.input({ type: 'setPublishes', kinds: ['audio'] });
    expect(client.asked()).toEqual([{ type: 'unpublish', trackIds: ['me:v'] }]);
    expect(client.heard()).toEqual(['offerData audio 0 video 0']);
    await client.cycle();
    expect(inbound()).toEqual(['me:a']);
    expect(client.directions()).toEqual(['inactive', 'recvonly']);
    expect(client.asked()).toMatchObject([{ type: 'warn', event: 'peer.track_denied' }, { type: 'negotiate' }]);

    client.input({ type: 'setPublishes', kinds: ['audio', 'video'] });
    await client.cycle();
    expect(inbound()).toEqual(['me:v', 'me:a']);
    expect(client.directions()).toEqual(['recvonly', 'recvonly']);
    expect(client.asked()).toMatchObject([{ type: 'negotiate' }, { type: 'publish', tracks: [{ trackId: 'me:v' }] }]);
  });

  test("keeps a client's encodings while its permission is revoked", async () => {
    const { sender } = client.publish('me:s', 'video', { rids: ['l', 'm', 'h'] });
    client.custom('renegotiateTracks');
    await client.cycle();
    for (const kinds of [['audio'], ['audio', 'video']] as const) {
      client.input({ type: 'setPublishes', kinds });
      await client.cycle();
      expect(sender.encodings.map(({ rid }) => rid)).toEqual(['l', 'm', 'h']);
    }
    expect(client.negotiation.inbound.at(-1)).toMatchObject({ trackId: 'me:s', rids: ['l', 'm', 'h'] });
  });

  test('starts no negotiation when a permission stays the same', () => {
    client.input({ type: 'setPublishes', kinds: ['video', 'audio'] });
    expect(client.heard()).toEqual([]);
    expect(client.asked()).toEqual([]);
  });

  test('starts no negotiation with a client that has nothing to negotiate yet', async () => {
    // Without any m-line to request, the client would offer none, which cannot be answered.
    const listener = new ScriptedClient().join(peerEndpoint('a'));
    listener.heard();
    listener.asked();
    listener.input({ type: 'setPublishes', kinds: ['audio'] });
    expect(listener.heard()).toEqual([]);
    expect(listener.asked()).toEqual([]);

    listener.publish('me:v', 'video');
    listener.publish('me:a', 'audio');
    listener.custom('renegotiateTracks');
    await listener.cycle();
    expect(listener.directions()).toEqual(['inactive', 'recvonly']);
  });

  test('applies a permission revoked while an offer is processed without another negotiation', async () => {
    const newcomer = new ScriptedClient().join();
    newcomer.publish('me:v', 'video');
    newcomer.custom('renegotiateTracks');
    newcomer.input({ type: 'setPublishes', kinds: ['audio'] });
    newcomer.heard();
    await newcomer.cycle();
    expect(newcomer.directions()).toEqual(['inactive']);
    expect(newcomer.heard()).not.toContain('offerData audio 0 video 0');
  });

  test('applies a revoked permission to a client that connects later, and never ends the peer', async () => {
    const restricted = new ScriptedClient({ publishes: ['audio'] });
    restricted.input({ type: 'setPublishes', kinds: [] });
    restricted.join();
    restricted.publish('me:v', 'video', { rids: ['l', 'm', 'h'] });
    restricted.publish('me:a', 'audio');
    restricted.custom('renegotiateTracks');
    await restricted.cycle();
    expect(restricted.negotiation.inbound).toEqual([]);
    expect(restricted.directions()).toEqual(['inactive', 'inactive']);
    expect(restricted.asked().map(({ type }) => type)).toEqual(['join', 'warn', 'negotiate']);
  });

  test('logs occurrences 1, 2, 4, 8 and so on of a client that offers a denied track anyway', async () => {
    client.input({ type: 'setPublishes', kinds: [] });
    let warnings = 0;
    for (let i = 0; i < 10; i++) {
      client.custom('renegotiateTracks');
      await client.cycle();
      warnings += client.asked().filter(({ type }) => type === 'warn').length;
    }
    expect(warnings).toBe(4);
  });
});

describe('tracks removed by the backend', () => {
  test('negotiates a track removed by the backend away and refuses its id, but accepts others', async () => {
    client.input({ type: 'trackRemovedByServer', trackId: 'me:v' });
    expect(client.heard()).toEqual(['offerData audio 0 video 0']);
    await client.cycle();
    expect(client.directions()).toEqual(['inactive', 'recvonly']);
    client.publish('me:v2', 'video');
    client.custom('renegotiateTracks');
    await client.cycle();
    expect(inbound()).toEqual(['me:a', 'me:v2']);
  });
});

test('notifies a client only of mutes of its own tracks', () => {
  client.input({ type: 'trackMutedByServer', trackId: 'me:a', muted: true });
  client.input({ type: 'trackMutedByServer', trackId: 'other', muted: true });
  expect(client.takeEvents()).toEqual([{ type: 'trackMutedByServer', data: { trackId: 'me:a', muted: true } }]);
});

test('sends a message from the backend as a custom event', () => {
  client.input({ type: 'roomMessage', message: { topic: 'poll', data: { question: 'Tea?' } } });
  expect(client.takeEvents()).toEqual([{ type: 'roomMessage', data: { topic: 'poll', data: { question: 'Tea?' } } }]);
});
