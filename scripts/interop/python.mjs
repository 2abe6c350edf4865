// Python packages for the tests, each in a separate folder below node_modules/.cache.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup.mjs';

const INSTALL_MS = 300_000;

/** Runs a program. Resolves with its output if it fails. */
export async function runProgram(program, args, { timeout, cwd, env = {} }) {
  const stdio = ['ignore', 'pipe', 'pipe'];
  const child = spawn(program, args, { stdio, timeout, cwd, env: { ...process.env, ...env } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
  const code = await new Promise((resolve) => child.once('close', resolve));

  return code === 0 ? undefined : output;
}

/** A pinned Python package. */
export class PythonPackage {
  #name;
  #version;
  #more;
  #folder;

  /** `more`: packages that go with it, each with its version as pip reads it. */
  constructor(name, version, more = []) {
    this.#name = name;
    this.#version = version;
    this.#more = more;
    this.#folder = join(root, 'node_modules', '.cache', `${name}-${version}`);
  }

  /** Installs it once. Returns what is missing, if anything. */
  missing() {
    const installed = join(this.#folder, 'installed');
    if (existsSync(installed)) return undefined;
    if (spawnSync('python3', ['-m', 'venv', this.#folder]).status !== 0) return 'python3 with venv';
    const pip = ['install', '--quiet', '--disable-pip-version-check', `${this.#name}==${this.#version}`, ...this.#more];
    const { status } = spawnSync(this.#program('pip'), pip, { stdio: 'inherit', timeout: INSTALL_MS });
    if (status !== 0) return `${this.#name} ${this.#version} from a Python package index`;
    spawnSync('touch', [installed]);

    return undefined;
  }

  /** Runs a program of the package. Resolves with its output if it fails. */
  run(program, args, { timeout, cwd, env = {} }) {
    return runProgram(this.#program(program), args, { timeout, cwd, env: { PYTHONDONTWRITEBYTECODE: '1', ...env } });
  }

  #program(name) {
    return join(this.#folder, 'bin', name);
  }
}
