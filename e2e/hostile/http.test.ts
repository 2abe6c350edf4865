import { http } from './attacks/http.js';
import { hostileSuite } from './harness/arena.js';

hostileSuite('Hostile http', http);
