// Part of style.mjs: where code that a simulated cluster runs may use the machine's time, randomness and network.
// Everywhere else they are passed in, so that the seed determines the history (docs/reference/simulation.md).
import { relative } from 'node:path';
import { isForTests, root, withoutComments } from './modules.mjs';

const PACKAGES = new Set(['actors', 'distribution', 'notifications', 'rooms']);

const WORDS = [
  /\bMath\.random\b/g,
  /\bDate\.now\b/g,
  /\bnew Date\(\)/g,
  /\bperformance\.now\b/g,
  /\b(?:systemClock|awakeClock)\./g,
  /(?<![.#\w])(?:setTimeout|setInterval)(?=\()/g,
  /\b(?:randomBytes|randomInt|randomUUID)(?=\()/g,
];

/** Values imported from the modules of Node that reach the network; types and the syntax of addresses are harmless. */
const SOCKETS = /^import \{([^}]*)\} from 'node:(?:net|dgram|tls|http|https|dns)';/gm;

function wordsOf(code) {
  const sockets = [...code.matchAll(SOCKETS)]
    .flatMap(([, names]) => names.split(','))
    .map((name) => name.trim())
    .filter((name) => name !== '' && !/^type |^isIP/.test(name));

  return [...WORDS.flatMap((pattern) => [...code.matchAll(pattern)].map(([word]) => word)), ...sockets];
}

/**
 * The seams: what each file may use, and why.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
const SEAMS = {
  // Request ids, which only logs show.
  'packages/actors/src/observation/request.ts': ['randomBytes'],
  // The environment of a node on a real machine, and its sockets.
  'packages/distribution/src/world.ts': ['Math.random', 'randomBytes'],
  'packages/distribution/src/handshake/dialer.ts': ['connect'],
  'packages/distribution/src/handshake/listener.ts': ['createServer'],
  'packages/notifications/src/webhook-post.ts': ['request as httpRequest', 'request as httpsRequest'],
  // Defaults of options.
  'packages/rooms/src/cluster/room-registry.ts': ['randomUUID'],
  'packages/rooms/src/room-host.ts': ['randomUUID'],
  // Secrets of invitations and peers, which must be unpredictable.
  'packages/rooms/src/passes.ts': ['randomBytes'],
  'packages/rooms/src/peer/random-bytes.ts': ['randomBytes'],
};

/** Returns uses of the machine's time, randomness and network outside the seams, and seams without a use. */
export function checkSeams(modules, seams = SEAMS) {
  const problems = [];
  const unused = new Set(Object.entries(seams).flatMap(([file, words]) => words.map((word) => `${file}: ${word}`)));
  for (const { path, group, name, text } of modules.values()) {
    if (group !== 'packages' || !PACKAGES.has(name) || isForTests(path)) continue;
    const file = relative(root, path);
    const code = withoutComments(text);
    for (const word of wordsOf(code)) {
      unused.delete(`${file}: ${word}`);
      if (seams[file]?.includes(word) !== true)
        problems.push(`${file}: '${word}' is out of a simulation's reach: take it as an option`);
    }
  }

  return [...problems, ...[...unused].map((seam) => `${seam} is no longer used: remove it from seams.mjs`)];
}
