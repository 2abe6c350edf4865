// Compiles protect4.ts (AssemblyScript) to protect4.wasm. Run after each change of the source, and commit both:
// npm run build:wasm -w packages/webrtc
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, 'protect4.wasm');
const compiler = join(dirname(createRequire(import.meta.url).resolve('assemblyscript/package.json')), 'bin', 'asc.js');

execFileSync(
  process.execPath,
  [
    compiler,
    'protect4.ts',
    '--outFile',
    target,
    '--runtime',
    'stub',
    '--use',
    'abort=',
    '--enable',
    'simd',
    '--importMemory',
    '--noExportMemory',
    '--optimizeLevel',
    '3',
    '--shrinkLevel',
    '0',
    '--converge',
    '--noAssert',
    '--disableWarning',
    '112',
  ],
  { cwd: here, stdio: 'inherit', env: {} },
);
