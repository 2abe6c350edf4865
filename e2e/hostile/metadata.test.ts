import { metadata } from './attacks/metadata.js';
import { hostileSuite } from './harness/arena.js';

hostileSuite('Hostile metadata', metadata);
