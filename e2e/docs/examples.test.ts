// Runs the examples of the README, the guides and the actors page against a real node. A block marked `no-test` cannot
// run here (a browser, another machine); every other `sh` and `js` block must succeed as it stands.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { BloomNode } from '../harness/bloom-node.js';
import { startNode } from '../harness/bloom-node.js';
import { repository } from '../harness/processes.js';

const run = promisify(execFile);
const guide = join(repository, 'docs', 'guide');
const pages = [
  'README.md',
  'docs/reference/actors.md',
  ...readdirSync(guide)
    .filter((f) => f.endsWith('.md'))
    .map((f) => `docs/guide/${f}`),
];

interface Example {
  language: string;
  code: string;
  line: number;
}

function examplesOf(page: string): Example[] {
  const text = readFileSync(join(repository, page), 'utf8');
  return (
    [...text.matchAll(/^```(sh|js)( [a-z-]+)*\n([\s\S]*?)^```$/gm)]
      .filter(([block]) => !block.split('\n')[0]?.includes('no-test'))
      .map((match) => ({
        language: match[1] as string,
        code: match[3] as string,
        line: text.slice(0, match.index).split('\n').length,
      }))
      // The two commands that lead to this state.
      .filter(({ code }) => !/^npm (start|test)/m.test(code))
  );
}

describe('the examples in the documents', () => {
  let node: BloomNode;
  // Inside the repository, so that imports find the packages.
  const folder = mkdtempSync(join(repository, 'e2e', '.docs-'));
  beforeAll(async () => {
    node = await startNode();
  });
  afterAll(async () => {
    await node?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const page of pages) {
    for (const example of examplesOf(page)) {
      test(`${page}:${example.line} works as it is written`, async () => {
        const code = example.code.replaceAll('127.0.0.1:5002', node.host);
        if (example.language === 'sh') {
          const { stdout } = await run('sh', ['-euc', code], { timeout: 20_000 });
          expect(stdout).not.toContain('"errors"');
        } else {
          const file = join(folder, 'example.mjs');
          writeFileSync(file, code);
          await run(process.execPath, [file], { timeout: 20_000, cwd: folder });
        }
      });
    }
  }
});
