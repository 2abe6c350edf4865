// Encoders with a constant bitrate, such as those of OBS, send fillers behind pictures that need fewer bits.
import { beforeEach, expect, test } from '@jest/globals';
import { RtcpReader } from '@bloom/rtp';
import type { Variant } from '../media-engine.js';
import { type MemoryPeer, MemoryWorld } from '../testing/memory-port.js';
import { NarrowClient } from '../testing/narrow-client.js';
import { H264, inboundSimulcast, inboundVideo, SyntheticSource, videoSlot } from '../testing/synthetic-media.js';

const FRAME_MS = 33;
const SLOT = videoSlot('cam', { codec: { ...H264, payloadType: 120, rtxPayloadType: 121 } });

let world: MemoryWorld;
beforeEach(() => {
  world = new MemoryWorld();
});

/** Returns the packets of a picture of `size` bytes with two packets of fillers, the last of which ends it. */
function picture(camera: SyntheticSource, { key = false, size = 300 } = {}): Buffer[] {
  camera.timestamp += FRAME_MS * 90;
  const slice = Buffer.alloc(size, 0x80);
  slice[0] = key ? 0x65 : 0x41;
  const filler = (flags: number): Buffer => Buffer.concat([Buffer.from([28, flags | 12]), Buffer.alloc(1_000, 0xff)]);
  const sets = key ? [Buffer.from([0x67, 0x42, 0xe0, 0x1f])] : [];
  const payloads = [...sets, slice, filler(0x80), filler(0x40)];
  return payloads.map((payload, i) => camera.packet(payload, i === payloads.length - 1));
}

test('a viewer gets fillers of two bytes, so that no packet and no end of a picture is missing', () => {
  const publisher = world.join('pub', { inbound: [inboundVideo('cam', { codec: H264 })] });
  const camera = new SyntheticSource({ ssrc: 0x1a, payloadType: H264.payloadType, mid: '1' });
  const viewer = world.join('sub', { outbound: [SLOT] });
  for (const key of [true, false]) for (const packet of picture(camera, { key })) publisher.send(packet);
  const seen = viewer.packets.map(({ payload, marker }) => [payload.subarray(0, 2).toString('hex'), marker]);
  const fillers = [
    ['0c80', false],
    ['0c80', true],
  ];
  const [sets, first, second] = ['6742', '6580', '4180'].map((start) => [start, false]);
  expect(seen).toEqual([sets, first, ...fillers, second, ...fillers]);
  expect(viewer.packets.map(({ payload }) => payload.length)).toEqual([4, 300, 2, 2, 300, 2, 2]);
  for (const [i, { sequence }] of viewer.packets.slice(1).entries())
    expect((sequence - viewer.packets[i]!.sequence) & 0xffff).toBe(1);
});

test('a viewer gets the largest size on a link that is too narrow only for its fillers', () => {
  const sizes = { l: 300, m: 600, h: 1_100 } as const;
  const rids = Object.keys(sizes) as Variant[];
  const track = inboundSimulcast('cam', { rids, codec: H264, bitratesBps: { l: 80_000, m: 150_000, h: 280_000 } });
  const publisher: MemoryPeer = world.join('pub', { inbound: [track] });
  const cameras = rids.map((rid, i) => {
    return { rid, camera: new SyntheticSource({ ssrc: 0x1a + i, payloadType: H264.payloadType, mid: '1', rid }) };
  });
  const link = new NarrowClient(world.join('sub', { outbound: [SLOT] }), 120_000);
  world.setTargetVariant('sub', 'cam', 'h');
  const rtcp = new RtcpReader();
  const keyWanted = new Set(cameras.map(({ camera }) => camera.options.ssrc));
  let due = 0;
  const play = (nowMs: number): void => {
    link.tick(nowMs);
    for (const compound of publisher.rtcp.splice(0)) {
      rtcp.open(compound);
      while (rtcp.next()) if (rtcp.isPli) keyWanted.add(rtcp.mediaSsrc);
    }
    if (nowMs < due) return;
    due = nowMs + FRAME_MS;
    for (const { rid, camera } of cameras) {
      const key = keyWanted.delete(camera.options.ssrc);
      for (const packet of picture(camera, { key, size: sizes[rid] })) publisher.send(packet);
    }
  };
  const outbound = () => world.stats().transports.find(({ peerId }) => peerId === 'sub')!.outbound[0];
  world.advance(15_000, play);
  expect(outbound()).toMatchObject({ variant: 'l', reason: 'low_bandwidth' });
  link.capacityBps = 500_000;
  link.lost = 0;
  world.advance(20_000, play);
  expect(outbound()).toMatchObject({ variant: 'h', reason: 'other' });
  expect(link.lost).toBe(0);
});
