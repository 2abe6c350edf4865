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

describe('the sound of a track', () => {
  const place = (position: number, mixPosition = 0) => ({ mixPosition, position });

  test('lies where it belongs, and goes on from there by its timestamps', () => {
    const track = new TrackAudio();
    track.write(1000, packet(16384), place(5760));
    // A little off its place by another measure: no seam for that.
    track.write(1960, packet(-16384), place(6720 + 300));
    const heard = read(track, 0, 9600);
    expect([heard[5759], heard[5760], heard[6719], heard[6720], heard[7679], heard[7680]]).toEqual([
      0, 0.5, 0.5, -0.5, -0.5, 0,
    ]);
  });

  test('has silence where packets are missing', () => {
    const track = new TrackAudio();
    track.write(0, packet(8192), place(5760));
    track.write(1920, packet(8192), place(7680));
    const heard = read(track, 0, 9600);
    expect([heard[5760], heard[6720], heard[7680]]).toEqual([0.25, 0, 0.25]);
  });

  test('is heard once, not again when the ring comes round', () => {
    const track = new TrackAudio();
    track.write(0, packet(8192), place(5760));
    expect(read(track, 0, 9600).some((value) => value !== 0)).toBe(true);
    track.write(50_000, packet(0), place(55_760, 9600));
    expect(read(track, 9600, 96_000).every((value) => value === 0)).toBe(true);
  });

  test('is placed anew when it is further from its place than 15 ms', () => {
    const track = new TrackAudio();
    track.write(0, packet(8192), place(1000));
    track.write(960, packet(8192), place(1960 + 721));
    const heard = read(track, 0, 4800);
    expect([heard[1959], heard[2680], heard[2681], heard[3640], heard[3641]]).toEqual([0.25, 0, 0.25, 0.25, 0]);
  });

  test('that comes too late is left out, as far as it is too late', () => {
    const track = new TrackAudio();
    track.write(0, packet(8192), place(100, 480));
    const heard = read(track, 480, 1920);
    expect([heard[0], heard[579], heard[580]]).toEqual([0.25, 0.25, 0]);
    track.write(960, packet(8192), place(1060, 4800));
    track.write(96_000, packet(8192), place(200_000, 4800));
    expect(read(track, 4800, 96_000).every((value) => value === 0)).toBe(true);
  });
});

test('loud sums bend before they clip, quiet sound stays as it is', () => {
  const samples = Float32Array.of(0.5, -0.8, 1, -3, 100);
  softClip(samples);
  expect(samples[0]).toBe(0.5);
  expect(samples[1]).toBeCloseTo(-0.8, 6);
  expect(samples[2]).toBeGreaterThan(0.8);
  for (const value of samples) expect(Math.abs(value)).toBeLessThanOrEqual(1);
  expect(samples[3]).toBeLessThan(-0.99);
});
