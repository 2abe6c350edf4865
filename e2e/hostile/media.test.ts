import { media } from './attacks/media.js';
import { hostileSuite } from './harness/arena.js';

hostileSuite('Hostile media', media);
