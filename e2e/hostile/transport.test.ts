import { transport } from './attacks/transport.js';
import { hostileSuite } from './harness/arena.js';

hostileSuite('Hostile transport', transport);
