import { data } from './attacks/data.js';
import { hostileSuite } from './harness/arena.js';

hostileSuite('Hostile data channels', data);
