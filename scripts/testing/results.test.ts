import { describe, expect, test } from '@jest/globals';
import { Results, counterexampleOf, reasonOf } from './results.mjs';

interface Case {
  fullName: string;
  status: 'passed' | 'failed' | 'pending';
  failureMessages: string[];
}

const passed = (fullName: string): Case => ({
  fullName,
  status: 'passed',
  failureMessages: [],
});
const skipped = (fullName: string): Case => ({ fullName, status: 'pending', failureMessages: [] });
const failed = (fullName: string, message: string): Case => ({
  fullName,
  status: 'failed',
  failureMessages: [message],
});

function results(cases: Case[], options = { strict: false, filtered: false }): Results {
  const all = new Results(options);
  all.add({
    testResults: [
      { name: 'a.test.ts', status: 'passed', message: '', startTime: 0, endTime: 1, assertionResults: cases },
    ],
  });
  return all;
}

const lastLine = (all: Results): string | undefined => all.lines().at(-1);

describe('the result of a run', () => {
  test('counts the tests that ran', () => {
    const all = results([passed('one'), passed('two'), skipped('at night [nightly]')]);
    expect(lastLine(all)).toBe('2 passed, 0 failed, 1 skipped');
    expect(all.ok).toBe(true);
  });

  test('sums up the tests in containers, with their images and time limit', () => {
    const all = results([passed('one')]);
    expect(all.lines().join('\n')).not.toContain('Containers');
    all.containerImages(60_000);
    for (const [name, endTime] of [
      ['e2e/containers/image.test.ts', 30_000],
      ['e2e/containers/faults.test.ts', 90_000],
    ] as const)
      all.add({ testResults: [{ name, status: 'passed', message: '', startTime: 0, endTime, assertionResults: [] }] });
    expect(all.lines()).toEqual(
      expect.arrayContaining([
        '*** Containers: 3.0 of 8 min',
        '***     60.0 s  images',
        expect.stringContaining('90.0'),
      ]),
    );
  });

  test('says that no test has the name that was asked for', () => {
    const all = results([skipped('another')], { strict: false, filtered: true });
    expect(all.ok).toBe(false);
    expect(all.lines()).toContain('*** No test has this name, so none ran');
  });

  test('is a failure when nothing passed', () => {
    expect(results([]).ok).toBe(false);
  });

  test('counts a file that did not load', () => {
    const all = results([passed('one')]);
    all.add({
      testResults: [
        { name: 'b.test.ts', status: 'failed', message: 'no module', startTime: 0, endTime: 1, assertionResults: [] },
      ],
    });
    expect(lastLine(all)).toBe('1 passed, 1 failed');
    expect(all.lines().join('\n')).toContain('b.test.ts: no module');
    expect(all.ok).toBe(false);
  });

  test('summarises the errors of a failed test in a few lines', () => {
    const [yellow, plain] = ['\u001B[33m', '\u001B[39m'];
    const error = `Error: ${yellow}late${plain}\n\nExpected: 1\n    at a.test.ts:1:1\n    at b.ts:2:2`;
    const said = ['***     Error: late', '***     Expected: 1'];
    const wrong = results([failed('two', error), failed('three', 'x'.repeat(1_000))]).lines();
    expect(wrong).toEqual(expect.arrayContaining(['***   a.test.ts: two', ...said, `***     ${'x'.repeat(200)}`]));
    expect(wrong.join('\n')).not.toContain('b.ts');
  });

  test('shows how to repeat a failed property', () => {
    const message = 'Property failed after 1 tests\n{ seed: -12, path: "0:1:1", endOnFailure: true }';
    expect(counterexampleOf(message)).toEqual({ seed: '-12', path: '0:1:1' });
    expect(
      results([failed(`it's (odd)`, message)])
        .lines()
        .join('\n'),
    ).toContain(String.raw`npm test -- a.test.ts -t '^it'\''s \(odd\)$' --seed -12 --path 0:1:1`);
  });
});

describe('skipped tests', () => {
  test('skipped tests have their reason in the title', () => {
    expect(reasonOf('a call [needs chromium] is heard')).toBe('needs chromium');
    expect(reasonOf('a call [needs root] for an hour [nightly]')).toBe('nightly');
    expect(reasonOf('an array [1, 2]')).toBeUndefined();
  });

  test('skipped tests fail a strict run unless they are nightly or need containers', () => {
    const accepted = [passed('one'), skipped('a [nightly]'), skipped('d [needs containers]')];
    expect(results(accepted, { strict: true, filtered: false }).ok).toBe(true);
    const cases = [...accepted, skipped('b [needs root]'), skipped('c')];
    const strict = results(cases, { strict: true, filtered: false });
    expect(lastLine(strict)).toBe('1 passed, 2 failed, 4 skipped');
    expect(strict.ok).toBe(false);
    expect(results(cases).ok).toBe(true);
  });

  test('skipped tests do not include those that the caller filtered out', () => {
    expect(lastLine(results([passed('one'), skipped('c')], { strict: false, filtered: true }))).toBe(
      '1 passed, 0 failed',
    );
  });
});
