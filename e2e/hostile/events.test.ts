import { events } from './attacks/events.js';
import { hostileSuite } from './harness/arena.js';

hostileSuite('Hostile events', events);
