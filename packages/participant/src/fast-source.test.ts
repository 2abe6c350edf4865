import { EntryPoint, payloadFormat, RtpView } from '@bloom/rtp';
import { expect, test } from '@jest/globals';
import { FastSource, type RtpOutlet } from './fast-source.js';
import { stampOf } from './publisher.js';

const PAYLOAD_TYPE = 96;

/** Records what is sent. */
class Kept implements RtpOutlet {
  readonly ssrc = 0xdecade;
  readonly transportCcId = 3;
  readonly packets: Buffer[] = [];

  sendRtp(buffer: Buffer, length: number): void {
    expect(buffer.length - length).toBeGreaterThanOrEqual(10);
    this.packets.push(buffer.subarray(0, length));
  }

  get views(): RtpView[] {
    return this.packets.map((packet) => {
      const view = new RtpView();
      expect(view.parse(packet)).toBe(true);
      return view;
    });
  }
}

/** Runs a source for this time, polled every 4 ms. */
function run(source: FastSource, outlet: RtpOutlet, ms: number): void {
  source.start(outlet, 0);
  for (let now = 0; now < ms; now += 4) source.tick(now);
}

test.each([8_000, 500_000, 4_000_000])('sends a video of %i bit/s at that rate within a tenth', (bitrateBps) => {
  const [source, outlet] = [new FastSource({ payloadType: PAYLOAD_TYPE, bitrateBps }), new Kept()];
  run(source, outlet, 10_000);
  const bits = outlet.views.reduce((sum, view) => sum + view.payloadLength * 8, 0);
  expect(bits / 10).toBeGreaterThan(bitrateBps * 0.9);
  expect(bits / 10).toBeLessThan(bitrateBps * 1.1);
  expect(source.sent).toBe(outlet.packets.length);
});

test('numbers, stamps and marks packets as those of a VP8 video', () => {
  const [source, outlet] = [new FastSource({ payloadType: PAYLOAD_TYPE, bitrateBps: 800_000 }), new Kept()];
  run(source, outlet, 1_000);
  const { views } = outlet;
  expect(views.map(({ sequence }) => sequence)).toEqual(views.map((_, i) => i));
  expect(new Set(views.map(({ ssrc }) => ssrc))).toEqual(new Set([outlet.ssrc]));
  expect(views.filter(({ marker }) => marker)).toHaveLength(30);
  expect(new Set(views.map(({ timestamp }) => timestamp)).size).toBe(30);
  const numbers = views.map((view) => (view.findExtension(3) ? view.buffer.readUInt16BE(view.foundStart) : -1));
  expect(numbers).toEqual(views.map((_, i) => i));
  for (const packet of outlet.packets) {
    expect(Math.abs(performance.timeOrigin + performance.now() - stampOf(packet) / 1_000)).toBeLessThan(10_000);
  }
});

test('begins every second with a key picture', () => {
  const [source, outlet] = [new FastSource({ payloadType: PAYLOAD_TYPE, bitrateBps: 200_000 }), new Kept()];
  run(source, outlet, 3_000);
  const reader = payloadFormat('vp8').createReader();
  const keys = outlet.views
    .filter((view) => reader.read(view) && reader.entryPoint === EntryPoint.yes)
    .map(({ timestamp }) => timestamp);
  expect(keys).toEqual([0, 90_000, 180_000]);
});

test('skips pictures that a pause of the process has missed', () => {
  const [source, outlet] = [new FastSource({ payloadType: PAYLOAD_TYPE, bitrateBps: 8_000 }), new Kept()];
  source.start(outlet, 0);
  source.tick(0);
  source.tick(10_000);
  expect(outlet.packets).toHaveLength(2);
  source.stop();
  source.tick(20_000);
  expect(outlet.packets).toHaveLength(2);
});
