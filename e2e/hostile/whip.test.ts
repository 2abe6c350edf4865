import { whip } from './attacks/whip.js';
import { hostileSuite } from './harness/arena.js';

hostileSuite('Hostile WHIP', whip);
