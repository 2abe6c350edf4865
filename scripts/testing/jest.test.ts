import { expect, test } from '@jest/globals';
import { Jest } from './jest.mjs';

test('gives concurrent runs separate caches, and the next run a warm one', async () => {
  const ends: (() => void)[] = [];
  const caches: (string | undefined)[] = [];
  const workspace = {
    folder: '/nowhere',
    run: async (_: string, args: string[]) => {
      caches.push(args.find((arg) => arg.startsWith('--cacheDirectory=')));
      await new Promise<void>((resolve) => ends.push(resolve));
      return { output: '', late: false };
    },
  };
  const jest = new Jest(workspace as never, { options: [], env: {} });
  const run = () => jest.run({ project: 'e2e', files: ['a.test.ts'], timeLimitMs: 1_000, onOutput: undefined });
  const [first] = [run(), run()];
  ends[0]!();
  await first;
  void run();
  const [one, two, three] = caches;
  expect(one === two).toBe(false);
  expect(one === three).toBe(true);
});
