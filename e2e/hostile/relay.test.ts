import { relay } from './attacks/relay.js';
import { hostileSuite } from './harness/arena.js';

hostileSuite('Hostile relay', relay);
