// Runs each attack once, one after another on one node. Attacks that need another node, and the proof in `npm test`,
// have their own files.
import { attacks } from './attacks/index.js';
import { bitrates } from './attacks/bitrates.js';
import { hostileSuite } from './harness/arena.js';

hostileSuite(
  'Hostile clients',
  attacks.filter((attack) => !bitrates.includes(attack)),
);
