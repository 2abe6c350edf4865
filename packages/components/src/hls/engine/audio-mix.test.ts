import { describe, expect, test } from '@jest/globals';
import { softClip, TrackAudio } from './audio-mix.js';

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
  test('is placed 120 ms ahead of the mix and goes on from there by its timestamps', () => {
    const track = new TrackAudio();
    track.write(1000, packet(16384), 480);
    track.write(1960, packet(-16384), 480);
    const heard = read(track, 480, 9600);
    expect(heard[5759]).toBe(0);
    expect(heard[5760]).toBe(0.5);
    expect(heard[6719]).toBe(0.5);
    expect(heard[6720]).toBe(-0.5);
    expect(heard[7680]).toBe(0);
  });

  test('has silence where packets are missing', () => {
    const track = new TrackAudio();
    track.write(0, packet(8192), 0);
    track.write(1920, packet(8192), 0);
    const heard = read(track, 0, 9600);
    expect([heard[5760], heard[6720], heard[7680]]).toEqual([0.25, 0, 0.25]);
  });

  test('is heard once, not again when the ring comes round', () => {
    const track = new TrackAudio();
    track.write(0, packet(8192), 0);
    expect(read(track, 0, 9600).some((value) => value !== 0)).toBe(true);
    track.write(50_000, packet(0), 9600);
    expect(read(track, 9600, 96_000).every((value) => value === 0)).toBe(true);
  });

  test('is placed anew when its clock jumps either way', () => {
    const track = new TrackAudio();
    track.write(0, packet(8192), 0);
    track.write(90_000_000, packet(8192), 9600);
    expect(read(track, 9600, 9600)[5760]).toBe(0.25);
    track.write(5, packet(8192), 19_200);
    expect(read(track, 19_200, 9600)[5760]).toBe(0.25);
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
