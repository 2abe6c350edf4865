import type { StepResult } from '../outside/trial.js';
import { paint, printable, type Screen, wrap } from '../text/style.js';
import { FULL_WIDTH, stepLines } from './doctor.js';

/** Returns one line per step, then what is wrong with each failed step, and how to fix it. */
export function trialView(steps: readonly StepResult[], screen: Screen): string[] {
  const lines = stepLines(
    steps.map(({ step, ...result }) => ({ name: step, ...result })),
    screen,
  );
  const words = { ...screen, width: Math.min(screen.width, FULL_WIDTH) };
  const failed = steps.filter(({ ok }) => !ok);
  const paths = steps.flatMap(({ media, step }) => (media === undefined ? [] : [step]));
  const verdict = failed.length === 0 ? ['', paint(screen, 'green', `  media passes over ${paths.join(', ')}`)] : [];

  return [
    ...lines,
    ...failed.flatMap(({ step, failure }) => [
      '',
      ...wrap(printable(`${step}: ${failure?.message} ${failure?.fix}`), words, '  '),
    ]),
    ...verdict,
  ];
}
