// Runs jest in a workspace and reads its report.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup.mjs';

/**
 * Tests produce much short-lived garbage, and there are as many processes as cores, so this saves a sixth of their CPU
 * time.
 */
export const GARBAGE_COLLECTION = ['--max-semi-space-size=64', '--single-threaded-gc'];

export class Jest {
  #runs = 0;
  /** Numbers of the caches in use. */
  #caches = new Set();

  /** Adds `options` to every run, and `env` to its environment. */
  constructor(workspace, { options, env }) {
    this.workspace = workspace;
    this.options = options;
    this.env = env;
  }

  /** Resolves with jest's report (undefined if it wrote none), its output, and whether it was cut off. */
  async run({ project, files, options = [], env = {}, timeLimitMs, onOutput }) {
    this.#runs += 1;
    let cache = 0;
    // Jest names its temporary files by process id, and processes in separate namespaces share ids.
    while (this.#caches.has(cache)) cache += 1;
    this.#caches.add(cache);
    const document = join(this.workspace.folder, `report-${this.#runs}.json`);
    const args = [
      '--experimental-vm-modules',
      '--no-warnings',
      ...GARBAGE_COLLECTION,
      join(root, 'node_modules', 'jest', 'bin', 'jest.js'),
      // Outside the workspace, which jest would use, because it must outlive the run.
      `--cacheDirectory=${join(root, 'node_modules', '.cache', `jest-${cache}`)}`,
      '--json',
      `--outputFile=${document}`,
      ...options,
      ...this.options,
      '--selectProjects',
      project,
      '--runTestsByPath',
      ...files,
    ];
    const { output, late } = await this.workspace.run(process.execPath, args, {
      env: { ...this.env, ...env, BLOOM_TEST_RUN: '1' },
      timeLimitMs,
      onOutput,
    });
    this.#caches.delete(cache);
    return { report: this.#read(document), output, late };
  }

  #read(document) {
    try {
      return JSON.parse(readFileSync(document, 'utf8'));
    } catch {
      return undefined;
    } finally {
      rmSync(document, { force: true });
    }
  }
}
