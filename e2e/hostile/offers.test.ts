import { offers } from './attacks/offers.js';
import { hostileSuite } from './harness/arena.js';

hostileSuite('Hostile offers', offers);
