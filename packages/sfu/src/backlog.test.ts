import { beforeEach, expect, test } from '@jest/globals';
import { CODEC_NAMES } from '@bloom/rtp';
import type { TappedFrame } from './media-frames.js';
import { type MemoryPeer, MemoryWorld } from './testing/memory-port.js';
import { H264, inboundVideo, SyntheticSource } from './testing/synthetic-media.js';

const MB = 1024 * 1024;

let world: MemoryWorld;
beforeEach(() => {
  world = new MemoryWorld();
});

function openFeed(codec: 'h264' | 'opus'): (data: Buffer, timestamp?: number) => void {
  const feed = world.newNumber();
  const kind = codec === 'opus' ? 'audio' : 'video';
  world.apply({ type: 'openFeed', feed, options: { trackId: `feed-${feed}`, endpointId: 'camera', kind, codec } });
  return (data, timestamp = 0) => void world.apply({ type: 'feedFrame', feed, frame: { timestamp, data } });
}

interface Tap {
  number: number;
  frames(): TappedFrame[];
}

function openTap(trackId: string): Tap {
  const number = world.newNumber();
  world.apply({ type: 'openTap', tap: number, trackId, codecs: CODEC_NAMES });
  const frames = (): TappedFrame[] =>
    world.reports.flatMap((report) =>
      report.type === 'tapEvent' && report.tap === number && report.event.type === 'frame' ? [report.event.frame] : [],
    );
  return { number, frames };
}

/** Publishes H.264 tracks, each starting with a complete key picture. */
function publish(peerId: string, tracks: number): { peer: MemoryPeer; sources: SyntheticSource[]; ids: string[] } {
  const ids = Array.from({ length: tracks }, (_, i) => `${peerId}-${i}`);
  const ssrc = 0x1000 * (world.peers.size + 1);
  const inbound = ids.map((id, i) => inboundVideo(id, { ssrc: ssrc + i, mid: String(i), codec: H264 }));
  const peer = world.join(peerId, { inbound });
  const sources = ids.map((_, i) => new SyntheticSource({ ssrc: ssrc + i, payloadType: H264.payloadType }));
  return { peer, sources, ids };
}

function sendKeyPictures({ peer, sources }: ReturnType<typeof publish>): void {
  for (const source of sources) {
    source.timestamp += 3_000;
    for (const unit of ['6742e01f', '68ce', '6588'])
      peer.send(source.packet(Buffer.from(unit, 'hex'), unit === '6588'));
  }
}

/** Sends one picture of this many bytes on each track, interleaved, in slices of 1,150 bytes. */
function sendPictures({ peer, sources }: ReturnType<typeof publish>, bytes: number, ends: boolean): void {
  const slice = Buffer.alloc(1_150, 0x55);
  slice[0] = 0x41;
  const packets = Math.floor(bytes / slice.length);
  for (const source of sources) source.timestamp += 3_000;
  for (let i = 0; i < packets; i++) {
    for (const source of sources) peer.send(source.packet(slice, ends && i === packets - 1));
    if (i % 100 === 0) world.advance(20);
  }
  world.advance(400);
}

const bytesOf = (tap: Tap): number => tap.frames().reduce((sum, { data }) => sum + data.length, 0);

test('drops frames of an audio feed that outruns the room, and resumes once the room has caught up', () => {
  const send = openFeed('opus');
  for (let i = 0; i < 10_000; i++) send(Buffer.alloc(1_000, 0xfc), i * 960);
  expect(world.context.dropped.feed_overrun).toBeGreaterThan(5_000);

  world.advance(4_000);
  const before = world.context.dropped.feed_overrun;
  send(Buffer.alloc(1_000, 0xfc), 10_000 * 960);
  expect(world.context.dropped.feed_overrun).toBe(before);
});

test('drops audio that fits into no packet before it waits for anything', () => {
  const send = openFeed('opus');
  const sound = openTap('feed-1');
  for (let i = 0; i < 100; i++) send(Buffer.alloc(20_000, 0xfc), i * 960);
  expect(world.context.dropped.oversized).toBe(100);
  send(Buffer.alloc(100, 0xfc), 100 * 960);
  world.advance(20);
  expect(sound.frames()).toHaveLength(1);
});

test("applies one limit to the unfinished pictures of all of a participant's tracks", () => {
  const eve = publish('eve', 16);
  const taps = eve.ids.map(openTap);
  sendKeyPictures(eve);
  sendPictures(eve, 4 * MB, true);
  const held = taps.reduce((sum, tap) => sum + bytesOf(tap), 0);
  expect(held).toBeLessThan(32 * MB);
  expect(world.context.dropped.tap_overrun).toBeGreaterThan(8);
});

test("takes nothing from other participants when one participant's pictures never end", () => {
  const eve = publish('eve', 16);
  const ann = publish('ann', 1);
  for (const id of eve.ids) openTap(id);
  const tap = openTap(ann.ids[0]!);
  sendKeyPictures(eve);
  sendKeyPictures(ann);
  sendPictures(eve, 4 * MB, false);
  sendPictures(ann, 3 * MB, true);
  expect(tap.frames().at(-1)!.data.length).toBeGreaterThan(2.9 * MB);
});

test('passes pictures of ordinary size while other taps of the same participant are full', () => {
  const eve = publish('eve', 17);
  const [small, ...large] = eve.sources;
  const [tap] = eve.ids.map(openTap);
  sendKeyPictures(eve);
  sendPictures({ ...eve, sources: large }, 4 * MB, false);
  sendPictures({ ...eve, sources: [small!] }, MB / 4, true);
  expect(tap!.frames().at(-1)!.data.length).toBeGreaterThan(MB / 5);
});

test("restores a participant's whole limit once its frames are consumed", () => {
  const eve = publish('eve', 16);
  const taps = eve.ids.map(openTap);
  sendKeyPictures(eve);
  sendPictures(eve, 4 * MB, true);
  for (const { number } of taps) world.apply({ type: 'tapConsumed', tap: number, frames: 256, bytes: 1e9 });
  const before = bytesOf(taps[0]!);
  sendKeyPictures(eve);
  sendPictures({ ...eve, sources: [eve.sources[0]!] }, 4 * MB, true);
  expect(bytesOf(taps[0]!) - before).toBeGreaterThan(3.9 * MB);
});

test('returns the share of a closed tap to the others', () => {
  const eve = publish('eve', 16);
  const before = world.context.backlog.free;
  const taps = eve.ids.map(openTap);
  sendKeyPictures(eve);
  sendPictures(eve, 4 * MB, true);
  expect(world.context.backlog.free).toBeLessThan(before);
  for (const { number } of taps) world.apply({ type: 'closeTap', tap: number });
  expect(world.context.backlog.free).toBe(before);
});
