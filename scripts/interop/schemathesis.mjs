// Checks the API against the OpenAPI document: requests that are valid by the document are not refused as malformed,
// others are, and every response is documented. schemathesis.toml lists the intended differences.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../setup.mjs';
import { PythonPackage } from './python.mjs';

const RUN_MS = 600_000;
const EXAMPLES_PER_OPERATION = 20;
const folder = join(root, 'scripts', 'interop');
const program = new PythonPackage('schemathesis', '4.32.5');

export const schemathesis = {
  title: 'schemathesis finds the API to be what its OpenAPI document says',
  missing: () => program.missing(),
  async run({ url, token }) {
    // It leaves its caches in the current folder.
    const cwd = mkdtempSync(join(tmpdir(), 'bloom-schemathesis-'));
    const options = [
      `--header=Authorization: Bearer ${token}`,
      '--phases=examples,coverage,fuzzing',
      `--max-examples=${EXAMPLES_PER_OPERATION}`,
      '--generation-deterministic',
      '--no-color',
    ];

    try {
      return await program.run(
        'st',
        ['--config-file', join(folder, 'schemathesis.toml'), 'run', `${url}/openapi.json`, ...options],
        {
          timeout: RUN_MS,
          env: { PYTHONPATH: folder, SCHEMATHESIS_HOOKS: 'schemathesis_hooks' },
          cwd,
        },
      );
    } finally {
      rmSync(cwd, { recursive: true, force: true });
    }
  },
};
