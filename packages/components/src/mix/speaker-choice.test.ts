import { describe, expect, test } from '@jest/globals';
import { loudness, SpeakerChoice } from './speaker-choice.js';

/** Lets everybody be this loud from one time to another, in seconds. */
function hear(choice: SpeakerChoice, levels: Record<string, number>, [from, to]: readonly [number, number]): void {
  for (let atMs = from * 1_000; atMs < to * 1_000; atMs += 20) {
    choice.hear(new Map(Object.entries(levels)), { atMs, lengthMs: 20 });
  }
}

describe('the choice of who speaks', () => {
  test('is nobody before somebody speaks', () => {
    const choice = new SpeakerChoice();
    hear(choice, { ann: 0.001, bob: 0 }, [0, 5]);
    expect(choice.speaker).toBeUndefined();
  });

  test('is the louder one, and stays through silence', () => {
    const choice = new SpeakerChoice();
    hear(choice, { ann: 0.1, bob: 0.01 }, [0, 3]);
    expect(choice.speaker).toBe('ann');
    hear(choice, { ann: 0, bob: 0 }, [3, 10]);
    expect(choice.speaker).toBe('ann');
    hear(choice, { bob: 0.1 }, [10, 12]);
    expect(choice.speaker).toBe('bob');
  });

  test('does not change for a cough', () => {
    const choice = new SpeakerChoice();
    hear(choice, { ann: 0.1, bob: 0 }, [0, 5]);
    hear(choice, { ann: 0.1, bob: 0.3 }, [5, 5.06]);
    hear(choice, { ann: 0.1, bob: 0 }, [5.06, 6]);
    expect(choice.speaker).toBe('ann');
  });

  test('changes at most every two seconds', () => {
    const choice = new SpeakerChoice();
    hear(choice, { ann: 0.1, bob: 0 }, [0, 0.5]);
    hear(choice, { ann: 0, bob: 0.1 }, [0.5, 1.5]);
    expect(choice.speaker).toBe('ann');
    hear(choice, { ann: 0, bob: 0.1 }, [1.5, 3]);
    expect(choice.speaker).toBe('bob');
  });
});

test('loudness is the root mean square of both channels', () => {
  expect(loudness(Float32Array.of(1, -1), Float32Array.of(1, 1))).toBe(1);
  expect(loudness(Float32Array.of(1, 0), Float32Array.of(0, 0))).toBe(0.5);
  expect(loudness(new Float32Array(0), new Float32Array(0))).toBe(0);
});
