import { beforeEach, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { SpeakerChoice } from './speaker-choice.js';

let choice: SpeakerChoice;
beforeEach(() => {
  choice = new SpeakerChoice();
});

const ALL = ['ann', 'bob', 'eve'];
const shown = (candidates = ALL) => choice.choose(candidates).current;

test('starts with the first candidate during silence', () => {
  expect(choice.choose(ALL)).toEqual({ current: 'ann', changed: true });
  expect(choice.choose(ALL)).toEqual({ current: 'ann', changed: false });
});

test('follows the newest speaker after the hold time, and stays when the speech ends', () => {
  shown();
  choice.voice('bob', 'speech');
  expect(shown()).toBe('ann');
  choice.released();
  expect(choice.choose(ALL)).toEqual({ current: 'bob', changed: true });
  choice.voice('eve', 'speech');
  choice.voice('eve', 'silence');
  choice.voice('bob', 'silence');
  choice.released();
  expect(choice.choose(ALL)).toEqual({ current: 'bob', changed: false });
});

test('leaves a participant who has gone at once', () => {
  choice.voice('bob', 'speech');
  expect(shown()).toBe('bob');
  choice.gone('bob');
  expect(choice.choose(['ann', 'eve'])).toEqual({ current: 'ann', changed: true });
  expect(choice.choose([])).toEqual({ current: undefined, changed: false });
});

test('changes at most once per hold time while the shown participant stays', () => {
  const events = fc.array(
    fc.oneof(
      fc.tuple(fc.constantFrom(...ALL), fc.constantFrom('speech' as const, 'silence' as const)),
      fc.constant('released' as const),
    ),
  );
  fc.assert(
    fc.property(events, (happened) => {
      choice = new SpeakerChoice();
      shown();
      let mayChange = false;
      for (const event of happened) {
        if (event === 'released') {
          choice.released();
          mayChange = true;
        } else choice.voice(...event);
        const { current, changed } = choice.choose(ALL);
        expect(current).toBeDefined();
        expect(changed && !mayChange).toBe(false);
        if (changed) mayChange = false;
      }
    }),
  );
});
