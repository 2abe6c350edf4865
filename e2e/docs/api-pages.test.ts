import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { repository } from '../harness/processes.js';

test('gives every export of the published packages a comment and a page', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-api-pages-'));
  try {
    execFileSync(process.execPath, [join(repository, 'scripts', 'docs', 'api-pages', 'write.mjs'), folder], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
    for (const name of ['client', 'react', 'server-sdk']) {
      const page = readFileSync(join(folder, 'modules', `_bloom_${name}.html`), 'utf8');
      expect(page).toContain(`@bloom/${name}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 120_000);
