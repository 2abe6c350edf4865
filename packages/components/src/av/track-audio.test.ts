import { describe, expect, test } from '@jest/globals';
import { softClip, TrackAudio } from './track-audio.js';

const packet = (value: number): Int16Array => new Int16Array(1920).fill(value);

function read(track: TrackAudio, from: number, count: number): Float32Array {
  const left = new Float32Array(count);
  const right = new Float32Array(count);
  for (let at = 0; at < count; at += 960) {
    track.addTo(left.subarray(at, at + 960), right.subarray(at, at + 960), from + at);
  }
  expect(right).toEqual(left);

  return left;
}

describe("a track's sound", () => {
  const place = (position: number, mixPosition = 0) => ({ mixPosition, position });

  test('starts at its place in the mix and continues by its timestamps', () => {
    const track = new TrackAudio();
    track.write(1000, packet(16384), place(5760));
    // A small difference from its place does not cause a seam.
    track.write(1960, packet(-16384), place(6720 + 300));
    const heard = read(track, 0, 9600);
    expect(heard[5759]).toBe(0);
    expect(heard[5760]).toBe(0.5);
    expect(heard[6719]).toBe(0.5);
    expect(heard[6720]).toBe(-0.5);
    expect(heard[7679]).toBe(-0.5);
    expect(heard[7680]).toBe(0);
  });

  test('reads as silence where packets are missing', () => {
    const track = new TrackAudio();
    track.write(0, packet(8192), place(5760));
    track.write(1920, packet(8192), place(7680));
    const heard = read(track, 0, 9600);
    expect(heard[5760]).toBe(0.25);
    expect(heard[6720]).toBe(0);
    expect(heard[7680]).toBe(0.25);
  });

  test('plays sound only once, not again when the ring buffer wraps', () => {
    const track = new TrackAudio();
    track.write(0, packet(8192), place(5760));
    expect(read(track, 0, 9600).some((value) => value !== 0)).toBe(true);
    track.write(50_000, packet(0), place(55_760, 9600));
    expect(read(track, 9600, 96_000).every((value) => value === 0)).toBe(true);
  });

  test('moves a track that is more than 15 ms from its place', () => {
    const track = new TrackAudio();
    track.write(0, packet(8192), place(1000));
    track.write(960, packet(8192), place(1960 + 721));
    const heard = read(track, 0, 4800);
    expect(heard[1959]).toBe(0.25);
    expect(heard[2680]).toBe(0);
    expect(heard[2681]).toBe(0.25);
    expect(heard[3640]).toBe(0.25);
    expect(heard[3641]).toBe(0);
  });

  test('omits sound that arrives too late', () => {
    const track = new TrackAudio();
    track.write(0, packet(8192), place(100, 480));
    const heard = read(track, 480, 1920);
    expect(heard[0]).toBe(0.25);
    expect(heard[579]).toBe(0.25);
    expect(heard[580]).toBe(0);
    track.write(960, packet(8192), place(1060, 4800));
    track.write(96_000, packet(8192), place(200_000, 4800));
    expect(read(track, 4800, 96_000).every((value) => value === 0)).toBe(true);
  });
});

test('compresses loud sums before they clip, and leaves quiet sound unchanged', () => {
  const samples = Float32Array.of(0.5, -0.8, 1, -3, 100);
  softClip(samples);
  expect(samples[0]).toBe(0.5);
  expect(samples[1]).toBeCloseTo(-0.8, 6);
  expect(samples[2]).toBeGreaterThan(0.8);
  for (const value of samples) expect(Math.abs(value)).toBeLessThanOrEqual(1);
  expect(samples[3]).toBeLessThan(-0.99);
});
