import { describe, expect, test } from '@jest/globals';
import { Concealer } from './concealment.js';

const rate = 8000;
const level = 8000;

/** A voice of 125 Hz with overtones: 8 ms per cycle. */
const voice = (from: number, count: number, at = rate): Int16Array =>
  Int16Array.from({ length: count }, (_, i) => {
    const phase = (2 * Math.PI * 125 * (from + i)) / at;
    return Math.round(level * (0.6 * Math.sin(phase) + 0.3 * Math.sin(2 * phase) + 0.1 * Math.sin(3 * phase)));
  });

const loudness = (pcm: Int16Array): number => Math.sqrt(pcm.reduce((sum, one) => sum + one * one, 0) / pcm.length);

/** The largest step between two samples, which reveals a click. */
const roughness = (pcm: Int16Array): number =>
  pcm.reduce((most, one, at) => (at === 0 ? 0 : Math.max(most, Math.abs(one - (pcm[at - 1] as number)))), 0);

function heardFor(frames: number, concealer: Concealer): void {
  for (let frame = 0; frame < frames; frame++) concealer.accept(voice(frame * 160, 160));
}

describe('concealment', () => {
  test.each([rate, 48_000])('continues the voice through a lost frame, at %d samples per second', (at) => {
    const concealer = new Concealer(at);
    const length = at / 50;
    for (let frame = 0; frame < 5; frame++) concealer.accept(voice(frame * length, length, at));
    const invented = concealer.fill(length) as Int16Array;
    const meant = voice(5 * length, length, at);
    // The first 10 ms are at full volume and in phase with the voice.
    const half = length / 2;
    const error = invented.subarray(0, half).map((one, i) => one - (meant[i] as number));
    expect(loudness(error)).toBeLessThan(loudness(meant) * 0.2);
    expect(loudness(invented.subarray(half))).toBeLessThan(loudness(meant));
  });

  test('leaves no click on either side of the gap', () => {
    const concealer = new Concealer(rate);
    heardFor(5, concealer);
    const next = voice(7 * 160, 160);
    const sound = [
      ...voice(4 * 160, 160),
      ...(concealer.fill(160) as Int16Array),
      ...(concealer.fill(160) as Int16Array),
    ];
    concealer.accept(next);
    const all = Int16Array.from([...sound, ...next]);
    expect(roughness(all)).toBeLessThan(roughness(voice(0, 800)) * 1.7);
  });

  test('fades a long gap out into silence, and fades in what follows', () => {
    const concealer = new Concealer(rate);
    heardFor(5, concealer);
    const faded = [0, 1, 2].map(() => loudness(concealer.fill(160) as Int16Array));
    expect(faded).toEqual(faded.toSorted((a, b) => b - a));
    expect(faded[2]).toBeLessThan((faded[0] as number) / 2);
    expect(concealer.fill(160)).toBeUndefined();
    const loud = new Int16Array(160).fill(level);
    concealer.accept(loud);
    expect(loud[0]).toBeLessThan(level / 20);
    expect(loud[39]).toBeGreaterThan(level * 0.9);
    expect(loud[40]).toBe(level);
  });

  test('invents nothing before anything was heard', () => {
    expect(new Concealer(rate).fill(160)).toBeUndefined();
  });

  test('keeps pieces that are shorter than its history, joined', () => {
    const [whole, pieces] = [new Concealer(rate), new Concealer(rate)];
    whole.accept(voice(0, 640));
    for (let at = 0; at < 640; at += 40) pieces.accept(voice(at, 40));
    expect(pieces.fill(160)).toEqual(whole.fill(160));
  });
});
