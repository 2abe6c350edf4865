// Runs jest in a workspace and reads its report.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup.mjs';

/**
 * Tests make much garbage that is dead at once, and there are as many processes as cores: this takes a sixth of their CPU
 * time away.
 */
const GARBAGE_COLLECTION = ['--max-semi-space-size=64', '--single-threaded-gc'];

export class Jest {
  #runs = 0;
  /** Numbers of the caches that runs use now. */
  #caches = new Set();

  /** `options` go to every run, and `env` into its environment. */
  constructor(workspace, { options, env }) {
    this.workspace = workspace;
    this.options = options;
    this.env = env;
  }

  /** Resolves with jest's report (undefined where it wrote none), with what it printed and whether it was cut off. */
  async run({ project, files, options = [], env = {}, timeLimitMs, onOutput }) {
    this.#runs += 1;
    let cache = 0;
    // Jest names its temporary files by process id. Processes in namespaces of their own have the same ids.
    while (this.#caches.has(cache)) cache += 1;
    this.#caches.add(cache);
    const document = join(this.workspace.folder, `report-${this.#runs}.json`);
    const args = [
      '--experimental-vm-modules',
      '--no-warnings',
      ...GARBAGE_COLLECTION,
      join(root, 'node_modules', 'jest', 'bin', 'jest.js'),
      // Outside the workspace, which jest would take: it has to outlive the run.
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
