/**
 * `npm run bench:load -- capacity|scale|joining|memory|rush [--subscribers 50] [--bytes 1200] [--kind video]
 * [--pps 50000] [--joins 1000] [--span] [--node-flags="..."]`: capacity of one Bloom media worker, growth of its cost,
 * its lateness while clients join and leave, the memory they leave behind, with `--span` in rooms across two workers,
 * and a rush of `--subscribers` into one room. Exits with status 1 if a target is missed.
 */
import { parseArgs } from 'node:util';
import type { TrackKind } from '@bloom/participant';
import { enterPrivateNetwork } from '../sfu/private-network.js';
import { capacity } from './capacity.js';
import { joining } from './joining.js';
import { memory } from './memory.js';
import { rush } from './rush.js';
import type { Shape } from './rooms.js';
import { scale } from './scale.js';
import { NODE_FLAGS } from '../sfu/process.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    subscribers: { type: 'string', default: '50' },
    bytes: { type: 'string', default: '1200' },
    kind: { type: 'string', default: 'video' },
    /** Packets per second sent by the server. */
    pps: { type: 'string', default: '50000' },
    joins: { type: 'string', default: '1000' },
    span: { type: 'boolean', default: false },
    'node-flags': { type: 'string', default: NODE_FLAGS.join(' ') },
  },
});
enterPrivateNetwork();

const shape: Shape = {
  rooms: 1,
  subscribers: Number(values.subscribers),
  kind: values.kind as TrackKind,
  bytes: Number(values.bytes),
};
const flags = values['node-flags'].split(' ').filter(Boolean);
const [what] = positionals;
if (what === 'capacity') await capacity(shape, flags);
else if (what === 'scale') await scale(shape, flags);
else if (what === 'joining') await joining(shape, flags, Number(values.pps));
else if (what === 'rush') await rush(shape.subscribers, flags);
else if (what === 'memory')
  await memory(shape, { workers: values.span ? 2 : 1, spans: values.span, nodeFlags: flags }, Number(values.joins));
else {
  console.error(`bench:load ${what ?? ''}: choose capacity, scale, joining, memory or rush`);
  process.exit(64);
}
process.exit();
