import { describe, expect, test } from '@jest/globals';
import { audioTrack, peerEndpoint, ScriptedClient, videoTrack } from '../testing/scripted-client.js';

const muted = (by: object) => ({ type: 'trackMuted', endpointId: 'a', trackId: 'a:v', muted: by }) as const;
const stalled = (is: boolean) => ({ type: 'trackStalled', endpointId: 'a', trackId: 'a:v', stalled: is }) as const;
const knowing = (...tracks: Parameters<typeof peerEndpoint>[1][]) =>
  new ScriptedClient().joinWith(['trackState'], peerEndpoint('a', ...tracks));

describe('a client that supports track state', () => {
  test('sends the state of a track right after its announcement', () => {
    const track = videoTrack('a:v', { muted: { publisher: true, server: false }, stalled: true });
    expect(knowing(track).heard()).toEqual([
      'connected',
      'tracksAdded a: a:v',
      'trackMuted a:v true by publisher',
      'trackMuted a:v false by server',
      'trackStalled a:v true',
      'offerData audio 0 video 1',
    ]);
  });

  test('says which tracks are encrypted', () => {
    const client = knowing(videoTrack('a:v', { encrypted: true }), videoTrack('a:w'));
    const [added] = client.takeEvents().filter(({ type }) => type === 'tracksAdded');
    expect(added?.['data'].tracks).toMatchObject({ 'a:v': { encrypted: true }, 'a:w': { kind: 'video' } });
    expect(added?.['data'].tracks['a:w']).not.toHaveProperty('encrypted');
  });

  test('sends changes at once, even before the client has the media', () => {
    const client = knowing(videoTrack('a:v'));
    client.heard();
    client.input(muted({ publisher: true }));
    client.input(muted({ publisher: true, server: true }));
    client.input(muted({ publisher: false, server: true }));
    client.input(stalled(true));
    client.input(stalled(false));
    expect(client.heard()).toEqual([
      'trackMuted a:v true by publisher',
      'trackMuted a:v true by server',
      'trackMuted a:v false by publisher',
      'trackStalled a:v true',
      'trackStalled a:v false',
    ]);
  });

  test('sends the latest state of a track that changed before the client could know it', async () => {
    const client = knowing(videoTrack('a:v'));
    await client.sendOffer();
    client.input({ type: 'tracksAdded', endpointId: 'a', tracks: [videoTrack('a:w')] });
    client.input({ type: 'trackMuted', endpointId: 'a', trackId: 'a:w', muted: { publisher: true } });
    client.input({ type: 'trackMuted', endpointId: 'a', trackId: 'a:w', muted: { publisher: false } });
    client.heard();
    await client.negotiated();
    client.input({ type: 'iceConnected', peerId: 'me', generation: client.negotiation.generation });
    client.input({ type: 'dtlsConnected', peerId: 'me' });
    const events = client.heard();
    expect(events[events.indexOf('tracksAdded a: a:w') + 1]).toBe('trackMuted a:w false by publisher');
    expect(events.filter((event) => event.startsWith('trackMuted'))).toHaveLength(1);
  });

  test('sends the kind of each track with its announcement', () => {
    const client = knowing(videoTrack('a:v'), audioTrack('a:a'));
    const events = client.takeEvents();
    const kinds = { 'a:v': { kind: 'video' }, 'a:a': { kind: 'audio' } };
    expect(events[0]?.['data'].otherEndpoints[0].tracks).toMatchObject(kinds);
    expect(events[1]?.['data'].tracks).toMatchObject(kinds);
  });

  test('sends whether the encoding that the client gets is stalled, whatever the other one does', async () => {
    const first = knowing(videoTrack('a:v', { codec: 'vp8', fallback: 'h264' }));
    const second = knowing(videoTrack('a:v', { codec: 'vp9', fallback: 'vp8' }));
    for (const client of [first, second]) {
      await client.cycle();
      client.heard();
      client.input({ ...stalled(true), fallback: true });
      client.input(stalled(true));
      client.input(stalled(false));
    }
    expect(first.heard()).toEqual(['trackStalled a:v true', 'trackStalled a:v false']);
    expect(second.heard()).toEqual(['trackStalled a:v true']);
  });

  test('sends the state of the second encoding with the answer that gives it to the client', async () => {
    const track = { codec: 'vp9', fallback: 'vp8' } as const;
    const whole = knowing(videoTrack('a:v', { ...track, stalled: true }));
    const missing = knowing(videoTrack('a:v', { ...track, fallbackStalled: true }));
    expect(whole.heard()).toContain('trackStalled a:v true');
    expect(missing.heard().join()).not.toContain('trackStalled');
    for (const client of [whole, missing]) await client.cycle();
    expect(whole.heard()).toContain('trackStalled a:v false');
    expect(missing.heard()).toContain('trackStalled a:v true');
  });

  test('sends nothing about a track that has gone', async () => {
    const client = knowing(videoTrack('a:v'));
    await client.cycle();
    client.input({ type: 'tracksRemoved', endpointId: 'a', trackIds: ['a:v'] });
    client.heard();
    client.input(muted({ publisher: true }));
    client.input(stalled(true));
    expect(client.heard()).toEqual([]);
  });
});

test('sends nothing new to a client that does not support track state', async () => {
  const plain = new ScriptedClient().join(peerEndpoint('a', videoTrack('a:v')));
  const used = new ScriptedClient().join(
    peerEndpoint('a', videoTrack('a:v', { muted: { publisher: true }, stalled: true })),
  );
  expect(used.takeEvents()).toEqual(plain.takeEvents());
  await used.cycle();
  used.heard();
  used.input(muted({ publisher: false, server: true }));
  used.input(stalled(false));
  expect(used.heard()).toEqual([]);
});
