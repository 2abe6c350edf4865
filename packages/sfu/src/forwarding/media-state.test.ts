import { beforeEach, describe, expect, test } from '@jest/globals';
import type { MediaReport } from '../media-state.js';
import { type MemoryPeer, MemoryWorld } from '../testing/memory-port.js';
import { inboundAudio, inboundVideo, SyntheticSource } from '../testing/synthetic-media.js';

let world: MemoryWorld;
beforeEach(() => {
  world = new MemoryWorld();
});

const reports = (): MediaReport[] =>
  world.events.flatMap((event) => (event.type === 'mediaState' ? [event.media] : []));
const reportOf = (peerId: string): MediaReport | undefined =>
  world.stats().transports.find((transport) => transport.peerId === peerId)?.media;

/** Lets time pass while the client checks its path every two seconds. */
function pass(peer: MemoryPeer, ms: number, each?: (nowMs: number) => void): void {
  world.advance(ms, (nowMs) => {
    if (nowMs % 2_000 === 0) peer.check();
    each?.(nowMs);
  });
}

describe('reports of the media state', () => {
  test('names the path as soon as DTLS is connected', () => {
    world.join('ann', { inbound: [inboundVideo('cam')] });
    expect(reports()).toEqual([{ state: 'connecting' }, { state: 'connected', path: 'udp', ms: 0 }]);
    expect(reportOf('ann')).toEqual({ state: 'connected', path: 'udp' });
  });

  test('says within 10.5 s of the answer that nothing arrives', () => {
    const relay = { username: 'ann', password: 'secret' };
    world.apply({ type: 'openTransport', peerId: 'ann', relay, transport: 1 });
    world.negotiate('ann', { inbound: [inboundVideo('cam')] });
    world.advance(10_500);
    expect(reports().at(-1)).toEqual({ state: 'failed', problem: 'NO_CHECKS' });
  });

  test('gives a failed handshake as the reason before the transport ends', () => {
    const ann = world.join('ann', {});
    world.negotiate('ann', { inbound: [inboundVideo('cam')] });
    ann.pathState = { ...ann.pathState, dtls: 'failed' };
    ann.fail('DTLS alert');
    const types = world.events.map(({ type }) => type);
    expect(reports().at(-1)).toEqual({ state: 'failed', problem: 'DTLS_FAILED' });
    expect(types.lastIndexOf('mediaState')).toBeLessThan(types.indexOf('transportFailed'));
  });
});

describe('a track that sends nothing for 10 s', () => {
  test('reports a silent track as a problem', () => {
    const ann = world.join('ann', { inbound: [inboundVideo('cam')] });
    pass(ann, 11_000);
    expect(reportOf('ann')).toEqual({ state: 'connected', path: 'udp', problem: 'NO_MEDIA' });
  });

  test('reports a silent track as a problem even if another track sends', () => {
    const ann = world.join('ann', { inbound: [inboundVideo('cam'), inboundAudio('mic', { mid: '2' })] });
    const source = new SyntheticSource({ ssrc: 0x101, payloadType: 96, mid: '1' });
    pass(ann, 11_000, (nowMs) => {
      if (nowMs % 100 === 0) for (const packet of source.vp8Frame({ key: true })) ann.send(packet);
    });
    expect(reportOf('ann')?.problem).toBe('NO_MEDIA');
  });

  test('reports no problem while the silent track is muted', () => {
    const ann = world.join('ann', { inbound: [inboundVideo('cam')] });
    world.apply({ type: 'setTrackMuted', peerId: 'ann', trackId: 'cam', muted: true });
    pass(ann, 30_000);
    expect(reportOf('ann')?.problem).toBeUndefined();
  });

  test('reports no problem while the backend withholds the silent track', () => {
    const ann = world.join('ann', { inbound: [inboundVideo('cam')] });
    world.apply({ type: 'setTrackBlocked', peerId: 'ann', trackId: 'cam', blocked: true });
    pass(ann, 30_000);
    expect(reportOf('ann')?.problem).toBeUndefined();
  });

  test('reports no problem for a silent shared screen', () => {
    const ann = world.join('ann', { inbound: [inboundVideo('cam', { still: true })] });
    pass(ann, 30_000);
    expect(reportOf('ann')?.problem).toBeUndefined();
  });
});

describe('a video track without a picture for 3 s', () => {
  const stalls = (): string[] =>
    world.events.flatMap((event) => (event.type === 'trackStalled' ? [`${event.trackId} ${event.stalled}`] : []));

  test('stalls until the next picture', () => {
    const ann = world.join('ann', { inbound: [inboundVideo('cam')] });
    const source = new SyntheticSource({ ssrc: 0x101, payloadType: 96, mid: '1' });
    pass(ann, 2_800);
    expect(stalls()).toEqual([]);
    pass(ann, 500);
    expect(stalls()).toEqual(['cam true']);
    for (const packet of source.vp8Frame({ key: true })) ann.send(packet);
    pass(ann, 300);
    expect(stalls()).toEqual(['cam true', 'cam false']);
  });

  test('does not stall while it is muted, withheld or a shared screen, nor if it is audio', () => {
    const screen = inboundVideo('screen', { mid: '3', still: true });
    const ann = world.join('ann', { inbound: [inboundVideo('cam'), inboundAudio('mic', { mid: '2' }), screen] });
    world.apply({ type: 'setTrackMuted', peerId: 'ann', trackId: 'cam', muted: true });
    pass(ann, 10_000);
    world.apply({ type: 'setTrackBlocked', peerId: 'ann', trackId: 'cam', blocked: true });
    world.apply({ type: 'setTrackMuted', peerId: 'ann', trackId: 'cam', muted: false });
    pass(ann, 10_000);
    expect(stalls()).toEqual([]);
  });

  test('is no longer stalled once it is muted', () => {
    const ann = world.join('ann', { inbound: [inboundVideo('cam')] });
    pass(ann, 4_000);
    world.apply({ type: 'setTrackMuted', peerId: 'ann', trackId: 'cam', muted: true });
    pass(ann, 300);
    expect(stalls()).toEqual(['cam true', 'cam false']);
  });

  test('stalls even if it comes from a component', () => {
    const options = { trackId: 'film', kind: 'video', codec: 'vp8', endpointId: 'file' } as const;
    world.apply({ type: 'openFeed', feed: world.newNumber(), options });
    world.advance(3_500);
    expect(stalls()).toEqual(['film true']);
  });
});
