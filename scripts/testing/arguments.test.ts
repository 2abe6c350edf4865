import { expect, test } from '@jest/globals';
import { parseArguments, seedOfCommit } from './arguments.mjs';

test('separates options of the runner, patterns and options of jest', () => {
  expect(parseArguments(['packages/rtp', '-t', 'a title', '--seed', '-7', '--path=1:0', '--bail', 'e2e'])).toEqual({
    full: false,
    nightly: false,
    help: false,
    seed: -7,
    path: '1:0',
    patterns: ['packages/rtp', 'e2e'],
    jest: ['-t', 'a title', '--bail'],
  });
});

test('runs everything with --nightly', () => {
  expect(parseArguments(['--nightly'])).toMatchObject({ full: true, nightly: true });
});

test.each([['--seed'], ['--seed', 'x'], ['--seed=']])('%s %s is refused', (...args) => {
  expect(() => parseArguments(args)).toThrow('--seed takes an integer');
});

test('derives the same seed from the same commit, and has one without a commit too', () => {
  expect(seedOfCommit('9f78575aaaa')).toBe(0x9f78575);
  expect(seedOfCommit('')).toBe(1);
});
