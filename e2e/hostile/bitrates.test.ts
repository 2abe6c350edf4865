import { bitrates } from './attacks/bitrates.js';
import { hostileSuite } from './harness/arena.js';

hostileSuite('Hostile bitrates', bitrates);
