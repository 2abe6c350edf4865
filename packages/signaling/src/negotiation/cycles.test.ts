import { describe, expect, test } from '@jest/globals';
import { audioTrack, peerEndpoint, ScriptedClient, videoTrack } from '../testing/scripted-client.js';

const someone = peerEndpoint('a', videoTrack('a:v'));
const add = (...trackIds: string[]) =>
  ({ type: 'tracksAdded', endpointId: 'a', tracks: trackIds.map((trackId) => videoTrack(trackId)) }) as const;
const remove = (...trackIds: string[]) => ({ type: 'tracksRemoved', endpointId: 'a', trackIds }) as const;

/** Returns a client after its first cycle, in a room with one other peer that has no tracks. */
async function settled(): Promise<ScriptedClient> {
  const client = new ScriptedClient().join(peerEndpoint('a'));
  client.publish('me:v', 'video');
  client.custom('renegotiateTracks');
  await client.cycle();
  client.heard();
  client.asked();
  return client;
}

describe('the course of a cycle', () => {
  test('starts a cycle on renegotiateTracks', () => {
    const client = new ScriptedClient().join();
    client.heard();
    client.custom('renegotiateTracks');
    expect(client.heard()).toEqual(['offerData audio 0 video 0']);
  });

  test('starts a cycle when others add tracks', () => {
    const client = new ScriptedClient().join(peerEndpoint('a'));
    client.heard();
    client.input(add('a:v'));
    expect(client.heard()).toEqual(['tracksAdded a: a:v', 'offerData audio 0 video 1']);
  });

  test('starts a cycle when others remove tracks', async () => {
    const client = new ScriptedClient().join(someone);
    await client.cycle();
    client.heard();
    client.input(remove('a:v'));
    expect(client.heard()).toEqual(['tracksRemoved a: a:v', 'offerData audio 0 video 1']);
  });

  test('starts no cycle for tracks that come and go before the client learns of them', async () => {
    const client = await settled();
    client.custom('renegotiateTracks');
    client.input(add('a:v'));
    client.input(remove('a:v'));
    client.heard();
    await client.cycle();
    expect(client.heard()).toEqual(['sdpAnswer {"0":"me:v"}', 'candidate']);
  });

  test('always includes the relay servers and the counts in offerData', () => {
    const endpoint = {
      address: '192.0.2.1',
      port: 50_000,
      tcpPort: 3478,
      tls: { host: 'media.example.com', port: 443 },
      fingerprint: { algorithm: 'sha-256', value: '' },
    } as const;
    const client = new ScriptedClient({ endpoint }).join();
    client.takeEvents();
    client.custom('renegotiateTracks');
    const server = { serverAddr: '192.0.2.1', username: '1:me', password: 'secret' };
    expect(client.takeEvents()[0]?.['data']).toEqual({
      tracksTypes: { audio: 0, video: 0 },
      integratedTurnServers: [
        { ...server, serverPort: 50_000, transport: 'udp' },
        { ...server, serverPort: 3478, transport: 'tcp' },
        { ...server, serverAddr: 'media.example.com', serverPort: 443, transport: 'tls' },
      ],
    });
  });

  test('offers servers and candidates of both address families, IPv6 in brackets', async () => {
    const fingerprint = { algorithm: 'sha-256', value: '' } as const;
    const endpoint = { address: '192.0.2.1', secondAddress: '2001:db8::1', port: 50_000, tcpPort: 3478, fingerprint };
    const client = new ScriptedClient({ endpoint }).join(someone);
    const servers = client
      .takeEvents()
      .flatMap(({ data }) => (data as { integratedTurnServers?: [] }).integratedTurnServers ?? []);
    expect(servers.map(({ serverAddr, serverPort, transport }) => `${serverAddr}:${serverPort} ${transport}`)).toEqual([
      '192.0.2.1:50000 udp',
      '192.0.2.1:3478 tcp',
      '[2001:db8::1]:50000 udp',
      '[2001:db8::1]:3478 tcp',
    ]);
    await client.cycle();
    const candidates = client.takeEvents().filter(({ type }) => type === 'candidate');
    expect(candidates.map(({ data }) => (data as { candidate: string }).candidate)).toEqual([
      'candidate:1 1 UDP 2130706431 192.0.2.1 50000 typ host',
      'candidate:2 1 UDP 2130706175 2001:db8::1 50000 typ host',
    ]);
  });

  test('sends the answer only when the media plane is ready', async () => {
    const client = new ScriptedClient().join(someone);
    client.heard();
    await client.sendOffer();
    expect(client.heard()).toEqual([]);
    client.input({ type: 'negotiated', generation: client.negotiation.generation + 1 });
    expect(client.heard()).toEqual([]);
    await client.negotiated();
    expect(client.heard()).toEqual(['sdpAnswer {"0":"a:v"}', 'candidate']);
  });

  test('sends the candidate after every answer, never before', async () => {
    const client = await settled();
    client.custom('renegotiateTracks');
    await client.cycle();
    const [, answer, candidate] = client.takeEvents();
    expect(answer?.['type']).toBe('sdpAnswer');
    expect(candidate).toEqual({
      type: 'candidate',
      data: {
        candidate: 'candidate:1 1 UDP 2130706431 192.0.2.1 50000 typ host',
        sdpMLineIndex: 0,
        sdpMid: null,
        usernameFragment: null,
      },
    });
  });

  test('gives a restart by the client new server credentials and a higher generation', async () => {
    const client = await settled();
    const first = client.negotiation;
    client.custom('renegotiateTracks');
    await client.cycle();
    const second = client.negotiation;
    expect(second.generation).toBe(first.generation + 1);
    expect(second.ice.localUfrag).not.toBe(first.ice.localUfrag);
    expect(second.ice.localPwd).not.toBe(first.ice.localPwd);
    expect(second.ice.localUfrag.length).toBeGreaterThanOrEqual(4);
    expect(second.ice.localPwd.length).toBeGreaterThanOrEqual(22);
  });

  test('keeps its credentials without a restart, and ends the cycle with the answer', async () => {
    const client = await settled();
    const { ice } = client.negotiation;
    client.editOffer = (sdp) =>
      sdp.replaceAll(/a=ice-ufrag:.*/g, `a=ice-ufrag:${ice.remoteUfrag}\r`).replaceAll('\r\r', '\r');
    client.custom('renegotiateTracks');
    client.heard();
    await client.sendOffer();
    client.input(add('a:v'));
    client.input({ type: 'negotiated', generation: client.negotiation.generation });
    expect(client.negotiation.ice.localUfrag).toBe(ice.localUfrag);
    expect(client.heard()).toEqual([
      'sdpAnswer {"0":"me:v"}',
      'candidate',
      'tracksAdded a: a:v',
      'offerData audio 0 video 1',
    ]);
  });
});

describe('one cycle at a time', () => {
  test('follows a cycle by another if one was requested during it, and sends its offerData afterwards', async () => {
    const client = await settled();
    for (const moment of ['offer', 'answer', 'ice'] as const) {
      client.custom('renegotiateTracks');
      expect(client.heard()).toEqual(['offerData audio 0 video 0']);
      if (moment === 'offer') client.custom('renegotiateTracks');
      await client.sendOffer();
      if (moment === 'answer') client.custom('renegotiateTracks');
      await client.negotiated();
      if (moment === 'ice') client.custom('renegotiateTracks');
      client.heard();
      client.connected();
      expect(client.heard()).toEqual(['offerData audio 0 video 0']);
      await client.cycle();
      expect(client.heard()).toEqual(['sdpAnswer {"0":"me:v"}', 'candidate']);
    }
  });

  test('merges several causes during a cycle into one more cycle', async () => {
    const client = await settled();
    client.custom('renegotiateTracks');
    client.custom('renegotiateTracks');
    client.custom('renegotiateTracks');
    client.input(add('a:1'));
    client.input(add('a:2'));
    client.heard();
    await client.cycle();
    expect(client.heard().slice(2)).toEqual(['tracksAdded a: a:1 a:2', 'offerData audio 0 video 2']);
    await client.cycle();
    expect(client.heard()).toEqual(['sdpAnswer {"0":"me:v","1":"a:1","2":"a:2"}', 'candidate']);
  });

  test('holds announcements until the offerData of the cycle that carries them', async () => {
    const client = await settled();
    client.custom('renegotiateTracks');
    client.heard();
    client.input(add('a:v'));
    await client.sendOffer();
    await client.negotiated();
    expect(client.heard()).toEqual(['sdpAnswer {"0":"me:v"}', 'candidate']);
    client.connected();
    expect(client.heard()).toEqual(['tracksAdded a: a:v', 'offerData audio 0 video 1']);
  });

  test('freezes the set of slots when offerData is sent', async () => {
    const client = new ScriptedClient().join(peerEndpoint('a', videoTrack('a:1')));
    client.input(add('a:2'));
    await client.sendOffer();
    await client.negotiated();
    expect(client.negotiation.outbound.map((slot) => slot.trackId)).toEqual(['a:1']);
    expect(client.directions()).toEqual(['sendonly']);
  });

  test('accepts new m-lines in any offer when both sides start at once', async () => {
    const client = await settled();
    client.input(add('a:v'));
    client.publish('me:2', 'audio');
    client.custom('renegotiateTracks');
    await client.cycle();
    expect(client.heard()).toEqual([
      'tracksAdded a: a:v',
      'offerData audio 0 video 1',
      'sdpAnswer {"0":"me:v","1":"me:2","2":"a:v"}',
      'candidate',
      'offerData audio 0 video 1',
    ]);
    expect(client.asked()).toContainEqual(expect.objectContaining({ type: 'publish' }));
  });

  test("never announces a client's own tracks to it", () => {
    const client = new ScriptedClient().join();
    client.heard();
    client.input({ type: 'tracksAdded', endpointId: 'me', tracks: [videoTrack('me:v')] });
    expect(client.heard()).toEqual([]);
  });
});

describe('the end of a cycle', () => {
  test('ends the first cycle when DTLS connects', async () => {
    const client = new ScriptedClient().join(someone);
    client.custom('renegotiateTracks');
    await client.sendOffer();
    await client.negotiated();
    client.heard();
    client.input({ type: 'iceConnected', peerId: 'me', generation: client.negotiation.generation });
    expect(client.heard()).toEqual([]);
    client.input({ type: 'dtlsConnected', peerId: 'me' });
    expect(client.heard()).toEqual(['offerData audio 0 video 1']);
  });

  test('ends later cycles when ICE connects with the credentials of their answer', async () => {
    const client = await settled();
    const old = client.negotiation.generation;
    client.custom('renegotiateTracks');
    client.custom('renegotiateTracks');
    await client.sendOffer();
    await client.negotiated();
    client.heard();
    client.input({ type: 'iceConnected', peerId: 'me', generation: old });
    client.input({ type: 'dtlsConnected', peerId: 'me' });
    expect(client.heard()).toEqual([]);
    client.input({ type: 'iceConnected', peerId: 'me', generation: old + 1 });
    expect(client.heard()).toEqual(['offerData audio 0 video 0']);
  });

  test('ends a cycle after 5 seconds without ICE, so that the queue does not get stuck', async () => {
    const client = new ScriptedClient().join(someone);
    client.custom('renegotiateTracks');
    await client.sendOffer();
    client.timers();
    await client.negotiated();
    expect(client.timers()).toEqual(['apply 500', 'ice 5000']);
    client.heard();
    client.input({ type: 'timer', name: 'ice' });
    expect(client.heard()).toEqual(['offerData audio 0 video 1']);
  });

  test('stops the timer when the cycle ends', async () => {
    const client = new ScriptedClient().join(someone);
    await client.sendOffer();
    await client.negotiated();
    client.timers();
    client.connected();
    expect(client.timers()).toEqual(['no ice']);
  });

  test('does not end a cycle because of a late timer', async () => {
    const client = await settled();
    client.custom('renegotiateTracks');
    client.custom('renegotiateTracks');
    await client.sendOffer();
    client.heard();
    client.input({ type: 'timer', name: 'ice' });
    client.input({ type: 'timer', name: 'offer' });
    expect(client.heard()).toEqual([]);
  });
});

describe('late, repeated and missing offers', () => {
  test('ignores an unsolicited offer', async () => {
    const client = await settled();
    await client.sendOffer();
    expect(client.asked().map((action) => action.type)).toEqual(['warn']);
    expect(client.heard()).toEqual([]);
  });

  test('ignores a repeated offer', async () => {
    const client = await settled();
    client.custom('renegotiateTracks');
    const offer = await client.makeOffer();
    client.text(offer);
    client.asked();
    client.text(offer);
    expect(client.asked().map((action) => action.type)).toEqual(['warn']);
  });

  test('goes idle when an offer has been missing for 10 seconds, and retries after 10 more', async () => {
    const client = new ScriptedClient().join(someone);
    expect(client.timers()).toEqual(['offer 10000']);
    client.heard();
    client.input({ type: 'timer', name: 'offer' });
    expect(client.timers()).toEqual(['retry 10000']);
    expect(client.heard()).toEqual([]);
    client.input({ type: 'timer', name: 'retry' });
    expect(client.heard()).toEqual(['offerData audio 0 video 1']);
    await client.cycle();
    expect(client.heard()).toEqual(['sdpAnswer {"0":"a:v"}', 'candidate']);
  });

  test('requests a missing offer again at the next cause', () => {
    const client = new ScriptedClient().join(someone);
    client.input({ type: 'timer', name: 'offer' });
    client.timers();
    client.heard();
    client.input(add('a:w'));
    expect(client.heard()).toEqual(['tracksAdded a: a:w', 'offerData audio 0 video 2']);
    expect(client.timers()).toEqual(['no retry', 'offer 10000']);
  });

  test('accepts an offer that arrives after the 10 seconds as the answer to the request', async () => {
    const client = new ScriptedClient().join(someone);
    const offer = await client.makeOffer();
    client.input({ type: 'timer', name: 'offer' });
    client.timers();
    client.text(offer);
    await client.negotiated();
    client.connected();
    expect(client.directions()).toEqual(['sendonly']);
    expect(client.heard().at(-1)).toBe('offerData audio 0 video 1');
  });

  test('corrects an offer that crosses the next offerData with one more cycle', async () => {
    const client = new ScriptedClient().join(someone);
    const late = await client.makeOffer();
    client.input({ type: 'timer', name: 'offer' });
    client.input({ type: 'timer', name: 'retry' });
    client.text(late);
    client.text(await client.makeOffer());
    client.input({ type: 'negotiated', generation: client.negotiation.generation });
    client.heard();
    client.connected();
    expect(client.heard()).toEqual(['offerData audio 0 video 1']);
  });

  test('corrects an offer that arrives after the following cycle at once', async () => {
    const client = new ScriptedClient().join(someone);
    const late = await client.makeOffer();
    client.input({ type: 'timer', name: 'offer' });
    client.input({ type: 'timer', name: 'retry' });
    const later = await client.makeOffer();
    client.text(late);
    client.input({ type: 'negotiated', generation: client.negotiation.generation });
    client.connected();
    client.heard();
    client.text(later);
    expect(client.heard()).toEqual(['offerData audio 0 video 1']);
    await client.cycle();
    expect(client.heard()).toEqual(['sdpAnswer {"0":"a:v"}', 'candidate']);
  });

  test('corrects any number of late offers when the client has set the last one', async () => {
    const client = new ScriptedClient().join(someone);
    const late = [await client.makeOffer()];
    for (let i = 0; i < 3; i++) {
      client.input({ type: 'timer', name: 'offer' });
      client.input({ type: 'timer', name: 'retry' });
      late.push(await client.makeOffer());
    }
    const answer = (offer: string): void => {
      client.text(offer);
      client.input({ type: 'negotiated', generation: client.negotiation.generation });
    };
    answer(late[0] ?? '');
    client.text(late[1] ?? '');
    client.connected();
    // The rest arrives after the next `offerData` and is taken as the answers to this one and the one after it.
    const fifth = await client.makeOffer();
    answer(late[2] ?? '');
    client.text(late[3] ?? '');
    client.connected();
    const sixth = await client.makeOffer();
    answer(fifth);
    client.text(sixth);
    client.heard();
    client.connected();
    expect(client.heard()).toEqual(['offerData audio 0 video 1']);
  });

  test('leaves m-lines missing from an offer to a later cycle instead of requesting them at once', async () => {
    const client = new ScriptedClient().join(peerEndpoint('a', videoTrack('a:v'), audioTrack('a:a')));
    client.editOffer = (sdp) => sdp.replace(/m=video[^]*/, '').replace('BUNDLE 0 1', 'BUNDLE 0');
    await client.sendOffer();
    client.heard();
    client.timers();
    client.input({ type: 'negotiated', generation: client.negotiation.generation });
    expect(client.timers()).toEqual(['apply 500', 'retry 10000', 'ice 5000']);
    client.connected();
    expect(client.heard()).toEqual(['sdpAnswer {"0":"a:a"}', 'candidate']);
    client.input({ type: 'timer', name: 'retry' });
    expect(client.heard()).toEqual(['offerData audio 1 video 1']);
  });
});
