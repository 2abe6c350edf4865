// One of our nodes as a separate process: NAME MAPPER_PORT. Answers calls to `echo`, counts at `sink`. Reads commands
// from standard input: `seed NODE N` prints `full` once there are N members besides itself.
import { createInterface } from 'node:readline';
import { atom, type Pid, Tuple } from '@bloom/etf';
import { asGenCall, DistributionNode, type ProcessTable } from '@bloom/distribution';
import { silentLog } from '@bloom/log';
import { COOKIE } from './erlang.js';

const [name, mapperPort] = process.argv.slice(2);

let counted = 0;
const table: ProcessTable = {
  whereIs: () => own,
  deliver: ({ to }, message) => {
    if (to !== 'sink') {
      const call = asGenCall(message);
      if (call !== undefined) node.reply(call, call.request, own);
      return;
    }
    counted += 1;
    if (!(message instanceof Tuple) || message.elements.length !== 2) return;
    node.send(message.elements[1] as Pid, counted - 1, { from: own });
    counted = 0;
  },
  down: () => {},
  exit: () => {},
};

const node = await DistributionNode.start({
  name: name as string,
  mode: 'name',
  cookie: COOKIE,
  mapper: { port: Number(mapperPort) },
  processes: () => table,
  log: silentLog,
});
const own = node.createPid();
let wanted = Number.POSITIVE_INFINITY;
node.subscribe({
  nodeup: () => {
    if (node.nodes().length === wanted) process.stdout.write('full\n');
  },
});
createInterface({ input: process.stdin }).on('line', (line) => {
  const [, seed, members] = line.split(' ');
  wanted = Number(members);
  node.seed([seed as string]);
  if (node.nodes().length === wanted) process.stdout.write('full\n');
});
process.stdin.on('end', () => process.exit(0));
process.stdout.write(`ready ${atom(node.name).name}\n`);
