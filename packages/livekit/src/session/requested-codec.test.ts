// The Go SDK offers all codecs in one order, whichever its track has.
import { describe, expect, test } from '@jest/globals';
import { TrackSource, TrackType } from '@livekit/protocol';
import { ScriptedClient } from '../testing/scripted-client.js';

const CODECS = ['VP8/90000', 'H264/90000'];

/** Requests a camera in this codec, and offers it. */
function publish(codec: string, offered: readonly string[] = CODECS): ScriptedClient {
  const request = { cid: 'cam', type: TrackType.VIDEO, source: TrackSource.CAMERA, simulcastCodecs: [{ codec }] };
  const client = new ScriptedClient().join();
  client.request({ case: 'addTrack', value: request as never });

  return client.offer([{ kind: 'video', direction: 'sendonly', cid: 'cam', codecs: offered }]);
}

describe('a camera that is requested in a codec', () => {
  test.each([
    ['h264', 'h264'],
    ['video/H264', 'h264'],
    ['video/VP8', 'vp8'],
    ['', 'vp8'],
    ['video/constructor', 'vp8'],
  ])('named %p is received in %s', (codec, name) => {
    const [{ negotiation } = { negotiation: undefined }] = publish(codec).took('negotiate');
    expect(negotiation?.inbound).toMatchObject([{ codec: { name } }]);
  });

  test('is announced in it before it is offered', () => {
    expect(publish('video/H264').heard('trackPublished')[0]?.track?.mimeType).toBe('video/H264');
  });

  test('is received in another one if the offer lacks it', () => {
    const [{ negotiation } = { negotiation: undefined }] = publish('h264', ['VP8/90000']).took('negotiate');
    expect(negotiation?.inbound).toMatchObject([{ codec: { name: 'vp8' } }]);
  });
});
