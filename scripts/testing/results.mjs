// Adds up jest's reports and writes the summary. Pure: jest's documents in, lines out.

import { stripVTControlCharacters } from 'node:util';

const SLOWEST = 10;
/** Length of an error in the summary, so that nobody has to search a long log. */
const SAID_LINES = 6;
const SAID_CHARACTERS = 200;
const CONTAINERS = 'e2e/containers/';
/** Time limit of the tests in containers on two cores, including their images. */
const CONTAINER_LIMIT_MINUTES = 8;
/**
 * Skips that a strict run accepts. Programs can be installed anywhere, but not every machine allows nested containers.
 */
const ACCEPTED_SKIPS = new Set(['nightly', 'needs containers']);

/** Returns why a test was skipped, from the brackets in its title or one around it. */
export function reasonOf(title) {
  const reasons = [...title.matchAll(/\[(nightly|needs [^\]]+)\]/g)].map(([, reason]) => reason);
  // A nightly test is not missed during the day, whatever else it needs.
  return reasons.find((reason) => reason === 'nightly') ?? reasons[0];
}

/** Returns the seed and path that repeat a failed property, from fast-check's message. */
export function counterexampleOf(message) {
  const found = /\{ seed: (-?\d+), path: "([\d:]+)"/.exec(message);
  return found === null ? undefined : { seed: found[1], path: found[2] };
}

/** Returns a few lines of a test's errors, without stacks. */
function sayings(messages) {
  const text = stripVTControlCharacters(messages[0] ?? '').split(/\n\s+at /, 1)[0];
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.slice(0, SAID_LINES).map((line) => `  ${line.slice(0, SAID_CHARACTERS)}`);
}

const timed = ({ name, ms }) => `${(ms / 1000).toFixed(1).padStart(6)} s  ${name}`;
const quoted = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);

export class Results {
  #passed = 0;
  #failed = 0;
  #failures = [];
  #skipped = new Map();
  #files = [];
  #imagesMs = 0;

  /**
   * `strict`: only nightly tests and those of containers may be skipped. `filtered`: the caller chose tests by title.
   */
  constructor(options) {
    this.options = options;
  }

  /** Adds jest's report on one or more files. `name` shortens a path. */
  add(report, name = (path) => path) {
    for (const file of report.testResults) {
      this.#files.push({ name: name(file.name), ms: file.endTime - file.startTime });
      const failed = file.assertionResults.filter((test) => test.status === 'failed');
      // A file that does not load reports no failed test.
      if (file.status === 'failed' && failed.length === 0) this.fail(name(file.name), file.message);
      for (const test of file.assertionResults) this.#addTest(name(file.name), test);
    }
  }

  #addTest(file, test) {
    const title = test.fullName;
    if (test.status === 'failed') {
      const example = counterexampleOf(test.failureMessages.join('\n'));
      const repeat = `npm test -- ${file} -t ${quoted(`^${escaped(title)}$`)}`;
      this.#failures.push(`${file}: ${title}`, ...sayings(test.failureMessages));
      if (example) this.#failures.push(`  repeat: ${repeat} --seed ${example.seed} --path ${example.path}`);
      this.#failed += 1;
    } else if (test.status === 'passed') {
      this.#passed += 1;
    } else {
      const reason = reasonOf(title) ?? (test.status === 'todo' ? 'todo' : undefined);
      // Jest also reports tests that the caller filtered out as pending.
      if (reason === undefined && this.options.filtered) return;
      const key = reason ?? 'no reason given';
      this.#skipped.set(key, [...(this.#skipped.get(key) ?? []), `${file}: ${title}`]);
    }
  }

  /** Records a failure other than a test's: of a file, or jest itself. */
  fail(what, why) {
    this.#failed += 1;
    this.#failures.push(`${what}: ${why.trim().split('\n', 1)[0]}`);
  }

  /** Adds the build time of the container tests' images. */
  containerImages(ms) {
    this.#imagesMs = ms;
  }

  get #forbiddenSkips() {
    if (!this.options.strict) return 0;
    return [...this.#skipped].reduce(
      (sum, [reason, titles]) => sum + (ACCEPTED_SKIPS.has(reason) ? 0 : titles.length),
      0,
    );
  }

  get ok() {
    return this.#failed === 0 && this.#passed > 0 && this.#forbiddenSkips === 0;
  }

  /** Durations in ms, by file. */
  get durations() {
    return Object.fromEntries(this.#files.map(({ name, ms }) => [name, ms]));
  }

  /** Returns the end of a run's output, whose last line is for tools. `about` describes the run. */
  lines(about = '') {
    const lines = [];
    const section = (title, entries) => lines.push('', `*** ${title}`, ...entries.map((entry) => `***   ${entry}`));
    const slowest = this.#files.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST);
    if (slowest.length > 1) {
      section('Slowest files', slowest.map(timed));
    }
    const containers = this.#files.filter(({ name }) => name.startsWith(CONTAINERS));
    if (containers.length > 0) {
      const parts = [{ name: 'images', ms: this.#imagesMs }, ...containers];
      const minutes = parts.reduce((sum, { ms }) => sum + ms, 0) / 60_000;
      section(`Containers: ${minutes.toFixed(1)} of ${CONTAINER_LIMIT_MINUTES} min`, parts.map(timed));
    }
    for (const [reason, titles] of this.#skipped) section(`SKIPPED, ${reason} (${titles.length})`, titles);
    if (this.#forbiddenSkips > 0) section('With CI=true only nightly tests and those of containers may be skipped', []);
    if (this.#failures.length > 0) section('FAILED', this.#failures);
    if (this.#passed + this.#failed + this.#skipped.size === 0) section('No test has this name, so none ran', []);

    const skipped = [...this.#skipped.values()].flat().length;
    const counts = [`${this.#passed} passed`, `${this.#failed + this.#forbiddenSkips} failed`];
    if (skipped > 0) counts.push(`${skipped} skipped`);
    lines.push('', `${this.#files.length} files, ${about}`, counts.join(', '));
    return lines;
  }
}
