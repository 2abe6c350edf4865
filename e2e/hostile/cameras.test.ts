// Cameras that attack the node that reads them: the most that one can make the node and its process hold.
import { cameras } from './attacks/cameras.js';
import { hostileSuite } from './harness/arena.js';

hostileSuite('Hostile cameras', cameras, { needs: ['node-av'] });
