import { expect, test } from '@jest/globals';
import { staleRecipes } from './recipes.mjs';

const FILES: Readonly<Record<string, string>> = {
  'packages/house/src/rooms.ts': 'const ROOMS = [\n  kitchen({ size: 3 }),\n  parlour(),\n];\n',
};

function check(diff: string): string[] {
  const table = '| File | Change |\n|---|---|\n| `packages/house/src/attic.ts` | new |';
  const page = `# Page\n\n## A room\n\n${table}\n\n\`\`\`diff\n${diff}\n\`\`\`\n`;

  return staleRecipes(page, Object.keys(FILES), (path: string) => FILES[path]);
}

test('accepts a recipe whose removed lines and context exist', () => {
  expect(check(' // rooms.ts, in ROOMS\n   parlour(),\n-  kitchen({ ... }),\n+  kitchen({ size: 4 }),')).toEqual([]);
});

test('lets a recipe create a file that its table lists', () => {
  expect(check(' // attic.ts\n+export const ATTIC = 1;')).toEqual([]);
});

test('reports a removed line that is gone from the file', () => {
  expect(check(' // rooms.ts\n-  cellar(),')).toEqual(['docs/guide/extending.md, A room: no file has "cellar(),"']);
});

test('reports a context line that is gone from the file', () => {
  expect(check(' // rooms.ts\n   cellar(),\n+  attic(),')).toHaveLength(1);
});

test('reports a file that neither exists nor is listed', () => {
  expect(check(' // garage.ts\n+export const GARAGE = 1;')).toEqual([
    'docs/guide/extending.md, A room: there is no garage.ts',
  ]);
});

test('reports a name to insert at that is gone from the file', () => {
  expect(check(' // rooms.ts, in HALLS\n+  attic(),')).toEqual([
    'docs/guide/extending.md, A room: rooms.ts has no HALLS',
  ]);
});
