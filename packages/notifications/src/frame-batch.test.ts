import { describe, expect, test } from '@jest/globals';
import { MetricsEnvelope, NotificationEnvelope } from './bus.js';
import { FrameBatch } from './frame-batch.js';

/** Returns the payloads of short frames. */
function parse(frames: Buffer | undefined): string[] {
  const payloads: string[] = [];
  let at = 0;

  while (frames !== undefined && at < frames.length) {
    expect(frames[at]).toBe(0x82);
    const end = at + 2 + (frames[at + 1] ?? 0);
    payloads.push(frames.subarray(at + 2, end).toString('hex'));
    at = end;
  }

  return payloads;
}

describe('a frame batch', () => {
  const created = new NotificationEnvelope({ type: 'roomCreated', roomId: 'r' }, 'local');
  const report = new MetricsEnvelope({}, 'local');
  const message = { type: 'dataMessage', roomId: 'r', peerId: 'p', label: 'chat', to: [], data: 'hi' } as const;
  const said = new NotificationEnvelope({ ...message, to: [] }, 'local');
  const deleted = new NotificationEnvelope({ type: 'roomDeleted', roomId: 'r' }, 'local');

  test('joins the frames of each interest once, in order', () => {
    const batch = new FrameBatch();
    const envelopes = [created, report, said, deleted];
    for (const envelope of envelopes) batch.add(envelope);
    expect(batch.byteLength).toBe(envelopes.reduce((sum, { bytes }) => sum + bytes.length + 2, 0));
    expect(batch.count('data')).toBe(1);

    const framesFor = batch.take();
    const all = framesFor({ notification: true, metrics: true, data: true, recording: true });
    expect(framesFor({ notification: true, metrics: true, data: true, recording: true })).toBe(all);
    const hex = (...wanted: { bytes: Uint8Array }[]) => wanted.map(({ bytes }) => Buffer.from(bytes).toString('hex'));
    const none = { notification: false, metrics: false, data: false, recording: false };
    expect(parse(all)).toEqual(hex(created, report, said, deleted));
    expect(parse(framesFor({ ...none, notification: true }))).toEqual(hex(created, deleted));
    expect(parse(framesFor({ ...none, metrics: true }))).toEqual(hex(report));
    expect(parse(framesFor({ ...none, data: true }))).toEqual(hex(said));
    expect(framesFor(none)).toBeUndefined();
  });

  test('is empty after it has been taken', () => {
    const batch = new FrameBatch();
    batch.add(created);
    batch.take();

    expect(batch.isEmpty).toBe(true);
    expect(batch.byteLength).toBe(0);
    expect(batch.take()({ notification: true, metrics: true, data: true, recording: true })).toBeUndefined();
  });
});
