import { describe, expect, test } from '@jest/globals';
import { VideoQuality } from '@livekit/protocol';
import { sidOf } from '../names.js';
import { type Line, native, ScriptedClient, track } from '../testing/scripted-client.js';

const LINE: Line = { kind: 'video', direction: 'recvonly' };
const camera = track('v', 'video', { encodings: ['l', 'm', 'h'] });
const trackSids = [sidOf('TR', 'v')];
const set = (client: ScriptedClient, value: object): unknown =>
  client.request({ case: 'trackSetting', value: { trackSids, quality: VideoQuality.HIGH, ...value } as never });
const commands = (client: ScriptedClient): unknown[] => client.took('media').map(({ command }) => command);
const limit = (framesPerSecond: number | null): object => ({
  type: 'setMaxFrameRate',
  peerId: 'me',
  trackId: 'v',
  framesPerSecond,
});

describe('pictures per second', () => {
  test('are limited to what the client wants, until it names no number any more', () => {
    const client = new ScriptedClient().join([native('bob', [camera])]).offer([LINE]);
    commands(client);
    set(client, { fps: 15 });
    set(client, { fps: 15 });
    set(client, { fps: 0 });
    expect(commands(client)).toEqual([expect.objectContaining({ variant: 'h' }), limit(15), limit(null)]);
  });

  test('stay limited while the track is paused, and when it returns in another section', () => {
    const client = new ScriptedClient().join([native('bob', [camera])]).offer([LINE]);
    set(client, { fps: 15 });
    commands(client);
    set(client, { disabled: true });
    set(client, { fps: 15 });
    for (const subscribe of [false, true]) {
      client.request({ case: 'subscription', value: { trackSids, subscribe } as never });
      client.offer([LINE]);
    }
    expect(commands(client)).toEqual([
      expect.objectContaining({ type: 'setTrackPaused', paused: true }),
      expect.objectContaining({ type: 'setTrackPaused', paused: false }),
      expect.objectContaining({ type: 'setTargetVariant', variant: 'h' }),
      limit(15),
    ]);
  });
});

describe('a track that comes while media flows', () => {
  const held = (paused: boolean): object => ({ type: 'setTrackPaused', peerId: 'me', trackId: 'v', paused });
  const joined = (): ScriptedClient => {
    const client = new ScriptedClient().join().offer([LINE]).input({ type: 'dtlsConnected', peerId: 'me' });
    client.input({ type: 'endpointAdded', endpoint: native('bob', [track('v')]) });
    commands(client);

    return client.offerOnly([LINE]);
  };

  test('waits until its client has been sent the answer', () => {
    const client = joined();
    expect(commands(client)).toEqual([held(true)]);
    client.input({ type: 'negotiated', generation: 2 });
    expect(commands(client)).toEqual([held(false)]);
  });

  test('stays paused if its client wants it paused', () => {
    const client = joined();
    set(client, { disabled: true });
    commands(client);
    client.input({ type: 'negotiated', generation: 2 });
    expect(commands(client)).toEqual([held(true)]);
  });
});
