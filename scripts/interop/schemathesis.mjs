// The OpenAPI document against the API: what is valid by the document is not refused as malformed, what is not is refused, and every
// answer is documented. schemathesis.toml lists the differences that are meant.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup.mjs';

const VERSION = '4.32.5';
const INSTALL_MS = 300_000;
const RUN_MS = 600_000;
const EXAMPLES_PER_OPERATION = 20;
const venv = join(root, 'node_modules', '.cache', `schemathesis-${VERSION}`);
const program = join(venv, 'bin', 'st');

/** Installs it once, into a folder of its own. Returns what is lacking. */
function missing() {
  if (existsSync(program)) return undefined;
  if (spawnSync('python3', ['-m', 'venv', venv]).status !== 0) return 'python3 with venv';
  const pip = ['install', '--quiet', '--disable-pip-version-check', `schemathesis==${VERSION}`];
  const { status } = spawnSync(join(venv, 'bin', 'pip'), pip, { stdio: 'inherit', timeout: INSTALL_MS });

  return status === 0 ? undefined : `schemathesis ${VERSION} from a Python package index`;
}

/** @param {import('./main.mjs').Node} node */
async function run({ url, token }) {
  const folder = join(root, 'scripts', 'interop');
  const options = [
    `--header=Authorization: Bearer ${token}`,
    '--phases=examples,coverage,fuzzing',
    `--max-examples=${EXAMPLES_PER_OPERATION}`,
    '--generation-deterministic',
    '--no-color',
  ];
  const child = spawn(
    program,
    ['--config-file', join(folder, 'schemathesis.toml'), 'run', `${url}/openapi.json`, ...options],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: RUN_MS,
      env: {
        ...process.env,
        PYTHONPATH: folder,
        PYTHONDONTWRITEBYTECODE: '1',
        SCHEMATHESIS_HOOKS: 'schemathesis_hooks',
      },
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
  const code = await new Promise((resolve) => child.once('close', resolve));

  return code === 0 ? undefined : output;
}

export const schemathesis = { title: 'schemathesis finds the API to be what its OpenAPI document says', missing, run };
