// Rooms whose participants are in both of two media workers: what crosses between them for one room must delay or
// displace nothing of another one.
import { nodesUnderTest } from '../harness/bloom-node.js';
import { nightly } from '../harness/needs.js';
import { data } from './attacks/data.js';
import { media } from './attacks/media.js';
import { hostileSuite } from './harness/arena.js';

nodesUnderTest.spanWorkers = true;

hostileSuite('Hostile clients across workers', [...media, ...(nightly ? data : [])], {
  env: () => Promise.resolve({ JF_MEDIA_WORKERS: '2' }),
});
