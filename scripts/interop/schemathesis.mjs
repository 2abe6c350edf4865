// Checks the API against the OpenAPI document: requests that are valid by the document are not refused as malformed,
// others are, and every response is documented. schemathesis.toml lists the intended differences.
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
  run({ url, token }) {
    const options = [
      `--header=Authorization: Bearer ${token}`,
      '--phases=examples,coverage,fuzzing',
      `--max-examples=${EXAMPLES_PER_OPERATION}`,
      '--generation-deterministic',
      '--no-color',
    ];

    return program.run(
      'st',
      ['--config-file', join(folder, 'schemathesis.toml'), 'run', `${url}/openapi.json`, ...options],
      {
        timeout: RUN_MS,
        env: { PYTHONPATH: folder, SCHEMATHESIS_HOOKS: 'schemathesis_hooks' },
      },
    );
  },
};
