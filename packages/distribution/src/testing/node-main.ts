// Runs the fixture node as a separate process that tests can kill and freeze: node-main NAME MAPPER_PORT TICK_MS
import { TestNode } from './test-node.js';

const [name, mapperPort, tickMs] = process.argv.slice(2);
try {
  await TestNode.start(name as string, Number(mapperPort), { tickTimeMs: Number(tickMs) });
  process.stdout.write('ready\n');
} catch (error) {
  process.stdout.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
