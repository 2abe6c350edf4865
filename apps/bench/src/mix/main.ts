/**
 * `npm run bench:mix -- [--seconds 20] [--rounds 3] [--people 4] [--subscribers 10] [--rate 500] [--json file]`:
 * latency of forwarded packets with and without the mix of a recording on the same node, in turn. Exits with 1 if the
 * mix makes the p99 more than 20 % higher. Needs root, gcc and ffmpeg.
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Publisher } from '@bloom/participant';
import { latencyText, type Latencies, type Result, summary, table } from '../http/result.js';
import { provenance } from '../report.js';
import { connection } from '../sfu/client.js';
import { enterPrivateNetwork } from '../sfu/private-network.js';
import { NODE_FLAGS } from '../sfu/process.js';
import { bloom } from '../sfu/servers/bloom.js';
import { Sink } from '../sfu/sink.js';
import { BenchRecording } from './recording.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '3' },
    people: { type: 'string', default: '4' },
    subscribers: { type: 'string', default: '10' },
    rate: { type: 'string', default: '500' },
    json: { type: 'string' },
  },
});
const [seconds, rounds, people] = [Number(values.seconds), Number(values.rounds), Number(values.people)];
const [subscribers, rate] = [Number(values.subscribers), Number(values.rate)];
const PACKET_BYTES = 1_200;
const RECORDED_SECONDS = 60;
const MAX_RATIO = 1.2;

enterPrivateNetwork();

const say = (text: string): void => void process.stderr.write(`${text} ...\n`);
const load = loadavg()[0] ?? 0;
const server = await bloom({ workers: 1, nodeFlags: NODE_FLAGS }).start('video');
const publisher = new Publisher('video', PACKET_BYTES);
const connections = [connection()];
let sink: Sink | undefined;
try {
  say(`recording ${people} people for ${RECORDED_SECONDS} s`);
  const recording = await BenchRecording.make(server, { people, seconds: RECORDED_SECONDS });
  await server.publish(connections[0]!, publisher);
  const receivers = Array.from({ length: subscribers }, connection);
  connections.push(...receivers);
  for (const receiver of receivers) await server.subscribe(receiver);
  const measured = new Sink(receivers);
  sink = measured;
  publisher.start(rate);
  await delay(3_000);

  const window = async (): Promise<number[]> => {
    measured.reset();
    await delay(seconds * 1_000);
    return measured.latencies.map((micros) => micros / 1_000);
  };
  const [quiet, mixing]: [number[], number[]] = [[], []];
  for (let round = 1; round <= rounds; round += 1) {
    say(`round ${round} of ${rounds}, without a mix`);
    quiet.push(...(await window()));
    await recording.startMix();
    say(`round ${round} of ${rounds}, with a mix`);
    const mixed = recording.keepMixing();
    mixing.push(...(await window()));
    await mixed.end();
    await delay(1_000);
  }

  const results = report(summary(quiet), summary(mixing));
  const machine = `${availableParallelism()} cores; other load at the start ${load.toFixed(1)}`;
  console.log(`\n${provenance()}\n\n${table(results)}\n\n${machine}`);
  if (values.json !== undefined) {
    writeFileSync(values.json, `${JSON.stringify({ provenance: provenance(), machine, results }, null, 2)}\n`);
  }
  if (results.some(({ met }) => !met)) process.exitCode = 1;
} finally {
  publisher.stop();
  await sink?.close();
  for (const pc of connections) await pc.close();
  await server.close();
}

function report(quiet: Latencies, mixing: Latencies): Result[] {
  const ratio = mixing.p99 / quiet.p99;
  const out = `${rate} packets/s to ${subscribers} subscribers`;

  return [
    { what: out, values: { ...quiet }, measured: latencyText(quiet), target: '-', met: quiet.count > 0 },
    {
      what: `${out}, while ${people} x 1280x720 are mixed`,
      values: { ...mixing, ratio },
      measured: `${latencyText(mixing)}; p99 x ${ratio.toFixed(2)}`,
      target: `p99 x ${MAX_RATIO} at most`,
      met: ratio <= MAX_RATIO,
    },
  ];
}
