// Runs chaos for `npm run chaos`, which passes valid arguments: minutes, nodes, seed and the file of the timeline.
import { writeFileSync } from 'node:fs';
import { labUnavailable } from '../hosts/lab.js';
import { runChaos } from './run.js';
import { verdictOf } from './verdict.js';

const [minutes = 0, nodes = 0, seed = 0] = process.argv.slice(2, 5).map(Number);
const file = process.argv[5] ?? '';

const reason = labUnavailable();
if (reason !== undefined) {
  console.error(`chaos cannot run: ${reason}`);
  process.exit(2);
}

const clear = process.stdout.isTTY ? '\r\x1b[K' : '';
const { violations, timeline, judged, figures } = await runChaos({
  minutes,
  nodes,
  seed,
  print: (line) => console.log(`${clear}${line}`),
  progress: (line) => clear !== '' && process.stdout.write(`${clear}${line}`),
});
writeFileSync(file, `${timeline.join('\n')}\n`);
console.log(clear);
for (const [name, figure] of Object.entries(figures)) console.log(`${name}: ${figure}`);
console.log(`the timeline of ${timeline.length} lines is in ${file}`);
for (const line of verdictOf(judged, violations)) console.log(line);
process.exit(violations.length === 0 ? 0 : 1);
