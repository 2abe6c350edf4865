// Parses the command line of `npm test`.

export const usage = `npm test [-- options] [jest arguments]

  --full          every end-to-end file, not only the proofs (npm run test:full)
  --nightly       --full with long idles, many rounds and a random seed (npm run test:nightly)
  --seed N        seed of all property tests; default: derived from the commit
  --path P        path of one counterexample, together with --seed and -t

Everything else goes to jest: npm test -- packages/rtp -t 'one title'`;

/** Options of jest that take a value. */
const WITH_VALUE = new Set(['-t', '--testNamePattern', '--testTimeout', '-w', '--maxWorkers', '-c', '--config']);

/**
 * Splits the arguments into the runner's own, patterns of file names, and options of jest.
 *
 * @throws Error when --seed is not an integer.
 */
export function parseArguments(args) {
  const own = { full: false, nightly: false, help: false, seed: undefined, path: undefined, patterns: [], jest: [] };
  for (let i = 0; i < args.length; i += 1) {
    const [name, inline] = args[i].startsWith('--') ? args[i].split(/=(.*)/s) : [args[i]];
    const value = () => inline ?? args[(i += 1)];
    if (name === '--full') own.full = true;
    else if (name === '--nightly') own.full = own.nightly = true;
    else if (name === '--help') own.help = true;
    else if (name === '--seed') own.seed = integer(value());
    else if (name === '--path') own.path = value();
    else if (!args[i].startsWith('-')) own.patterns.push(args[i]);
    else {
      own.jest.push(args[i]);
      if (WITH_VALUE.has(args[i]) && i + 1 < args.length) own.jest.push(args[(i += 1)]);
    }
  }
  return own;
}

function integer(text) {
  if (!/^-?\d+$/.test(text ?? '')) throw new Error(`--seed takes an integer, not ${text}`);
  return Number(text);
}

/** Returns a seed, so that a commit always draws the same inputs and each commit explores new ones. */
export function seedOfCommit(commit) {
  return /^[0-9a-f]{7}/.test(commit) ? parseInt(commit.slice(0, 7), 16) : 1;
}

/** Returns a whole number from an argument, or ends the program with a sentence. */
export function numberOf(name, text, [low, high]) {
  const number = Number(text);
  if (/^\d{1,10}$/.test(text) && number >= low && number <= high) return number;
  console.error(`--${name} is '${text}', and must be a whole number from ${low} to ${high}`);
  process.exit(2);
}
