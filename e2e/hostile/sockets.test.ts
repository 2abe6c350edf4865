import { sockets } from './attacks/sockets.js';
import { hostileSuite } from './harness/arena.js';

hostileSuite('Hostile sockets', sockets);
