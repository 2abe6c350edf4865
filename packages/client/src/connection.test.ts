import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { LocalTrack } from './local-track.js';

/** The parts of a connection that an offer needs. */
class FakeConnection extends EventTarget {
  signalingState = 'stable';
  localDescription: { sdp: string } | undefined;
  readonly transceivers: unknown[] = [];
  setConfiguration(): void {}
  addTransceiver(): unknown {
    const transceiver = {
      mid: '0',
      direction: 'sendonly',
      currentDirection: null,
      sender: {},
      receiver: { track: { kind: 'video' } },
    };
    this.transceivers.push(transceiver);
    return transceiver;
  }
  getTransceivers(): unknown[] {
    return this.transceivers;
  }
  createOffer(): Promise<object> {
    return Promise.resolve({ type: 'offer', sdp: 'v=0' });
  }
  setLocalDescription(): Promise<void> {
    this.localDescription = { sdp: 'v=0' };
    return Promise.resolve();
  }
  removeTrack(): void {}
  close(): void {}
}

const world = globalThis as unknown as Record<string, unknown>;
beforeEach(() => void (world['RTCPeerConnection'] = FakeConnection));
afterEach(() => void delete world['RTCPeerConnection']);

test('does not publish a track that is unpublished while another is being added', async () => {
  const { MediaConnection } = await import('./connection.js');
  const offers: { trackIdToTrackMetadata: object }[] = [];
  const hooks = {
    send: (type: string, data: { trackIdToTrackMetadata: object }) => void (type === 'sdpOffer' && offers.push(data)),
    received() {},
    refused() {},
    channelOpened() {},
    lost() {},
  };
  const media = new MediaConnection(hooks as never, () => ({ selfId: 'ann', takesCodecs: false }));
  let bound = (): void => undefined;
  const track = (kind: string, bind: () => Promise<void>): LocalTrack =>
    ({ kind, media: null, init: {}, metadata: kind, bitratesBps: 1, bind, unbind() {} }) as unknown as LocalTrack;
  // The sender of a muted microphone is emptied first.
  const mic = track('audio', () => new Promise((resolve) => (bound = resolve)));
  const camera = track('video', () => Promise.resolve());
  media.publish(mic).catch(() => undefined);
  media.publish(camera).catch(() => undefined);
  media.offerData({ tracksTypes: {}, integratedTurnServers: [] });
  await new Promise((resolve) => setImmediate(resolve));
  media.unpublish(camera);
  bound();
  await new Promise((resolve) => setImmediate(resolve));
  const published = offers.flatMap(({ trackIdToTrackMetadata }) => Object.values(trackIdToTrackMetadata));
  expect(published).toEqual(['audio']);
});
