import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { fragment, type Mp4Sample } from './fragment.js';
import { avcCodecString, initSegment } from './init-segment.js';

interface Box {
  type: string;
  start: number;
  body: Buffer;
}

/** Parses the boxes of a buffer as the format defines them; fails if the sizes do not add up. */
function boxes(buffer: Buffer): Box[] {
  const found: Box[] = [];
  let at = 0;
  while (at < buffer.length) {
    const size = buffer.readUInt32BE(at);
    expect(size).toBeGreaterThanOrEqual(8);
    expect(at + size).toBeLessThanOrEqual(buffer.length);
    found.push({
      type: buffer.toString('latin1', at + 4, at + 8),
      start: at,
      body: buffer.subarray(at + 8, at + size),
    });
    at += size;
  }

  return found;
}

const inside = (buffer: Buffer, ...path: string[]): Buffer =>
  path.reduce((body, type) => boxes(body).find((candidate) => candidate.type === type)!.body, buffer);

const sps = Buffer.from('6742c01fda014016e840', 'hex');
const pps = Buffer.from('68ce3c80', 'hex');

describe('the initialisation segment', () => {
  const init = initSegment([
    { kind: 'video', width: 1280, height: 720, timescale: 90_000, sps, pps },
    { kind: 'audio', sampleRate: 48_000, audioConfig: Buffer.from('1190', 'hex') },
  ]);

  test('holds one video and one audio track with their decoder configurations', () => {
    expect(boxes(init).map(({ type }) => type)).toEqual(['ftyp', 'moov']);
    const moov = inside(init, 'moov');
    expect(boxes(moov).map(({ type }) => type)).toEqual(['mvhd', 'trak', 'trak', 'mvex']);
    expect(moov.includes(sps) && moov.includes(pps)).toBe(true);
    expect(moov.includes(Buffer.from('05021190', 'hex'))).toBe(true);
  });

  test('gives every box the size of its content', () => {
    const containers = new Set(['moov', 'trak', 'mdia', 'minf', 'dinf', 'stbl', 'mvex']);
    const walk = (buffer: Buffer): number =>
      boxes(buffer).reduce((count, { type, body }) => count + (containers.has(type) ? walk(body) : 1), 0);
    expect(walk(init)).toBe(24);
  });

  test('has the defined size in every fixed-size header', () => {
    const moov = inside(init, 'moov');
    const track = inside(moov, 'trak');
    const sizes = [inside(moov, 'mvhd'), inside(track, 'tkhd'), inside(track, 'mdia', 'mdhd')].map(
      (body) => body.length,
    );
    expect(sizes).toEqual([100, 84, 24]);
  });

  test('derives the codec string from the sequence parameters', () => {
    expect(avcCodecString(sps)).toBe('avc1.42c01f');
  });
});

describe('a fragment', () => {
  const sample = fc.record({
    data: fc.uint8Array({ minLength: 1, maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    duration: fc.integer({ min: 1, max: 90_000 }),
    key: fc.boolean(),
  });

  test('leads from every sample to its bytes, duration and time', () => {
    const run = fc.array(sample, { maxLength: 20 });
    fc.assert(
      fc.property(run, run, fc.integer({ min: 0, max: 2 ** 50 }), (videoSamples, audioSamples, decodeTime) => {
        const video = { track: 1, decodeTime, samples: videoSamples };
        const audio = { track: 2, decodeTime: decodeTime + 7, samples: audioSamples };
        const bytes = fragment(9, [video, audio]);
        const [moof, mdat] = boxes(bytes);
        expect(moof!.type).toBe('moof');
        expect(mdat!.type).toBe('mdat');
        const runs = [video, audio].filter(({ samples }) => samples.length > 0);
        const trafs = boxes(moof!.body).slice(1);
        expect(trafs).toHaveLength(runs.length);
        for (const [i, { body }] of trafs.entries()) {
          const expected = runs[i]!;
          expect(Number(inside(body, 'tfdt').readBigUInt64BE(4))).toBe(expected.decodeTime);
          const trun = inside(body, 'trun');
          expect(trun.readUInt32BE(4)).toBe(expected.samples.length);
          let at = trun.readUInt32BE(8);
          for (const [k, { data, duration }] of (expected.samples as Mp4Sample[]).entries()) {
            expect(trun.readUInt32BE(12 + k * 12)).toBe(duration);
            const size = trun.readUInt32BE(16 + k * 12);
            expect(bytes.subarray(at, at + size).equals(data)).toBe(true);
            at += size;
          }
        }
      }),
      { numRuns: fuzzRuns(300) },
    );
  });

  test('marks samples that depend on earlier ones', () => {
    const samples = [
      { data: Buffer.of(1), duration: 3000, key: true },
      { data: Buffer.of(2), duration: 3000, key: false },
    ];
    const [, traf] = boxes(inside(fragment(1, [{ track: 1, decodeTime: 0, samples }]), 'moof'));
    const trun = inside(traf!.body, 'trun');
    expect(trun.readUInt32BE(20)).toBe(0x0200_0000);
    expect(trun.readUInt32BE(32)).toBe(0x0101_0000);
  });
});
