// `npm run bench:crossing -- [--rate N] [--burst N] [--seconds N] [--rounds N]`: CPU and latency of handing packets of
// 1,200 bytes from one thread to another, by each way in turn. CPU is that of both threads once they are warm, less
// that of a run in which nothing crosses; it falls on the turns of the sender's event loop, at most one a millisecond.
// `--burst` packets are sent at once, as a camera does. Compare the ways within one run. Exits
// with status 1 if the way in use costs more than promised.
import { MessageChannel, type MessagePort, parentPort, Worker, workerData, isMainThread } from 'node:worker_threads';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { printTable, printVerdict } from '../report.js';
import { openReceiver, openSender, WAYS, type Way } from './ways.js';

const RING_BYTES = 1024 * 1024 + 256;
const PACKET_BYTES = 1_200;
const TURN_MS = 1;
const WARM_UP_SECONDS = 1;
/** Where a packet carries the time of its sending. */
const TIME_AT = 16;

interface Load {
  rate: number;
  burst: number;
  seconds: number;
}

interface Part {
  role: 'sender' | 'receiver';
  way: Way;
  ring: SharedArrayBuffer;
  port: MessagePort;
  udpPort: number;
  load: Load;
}

const now = (): number => performance.timeOrigin + performance.now();

interface Sent {
  packets: number;
  /** Turns of the event loop in which they were sent. */
  turns: number;
}

async function send(forward: (packet: Buffer) => void, { rate, burst, seconds }: Load): Promise<Sent> {
  const packet = Buffer.alloc(PACKET_BYTES, 1);
  const total = rate * seconds;
  const from = performance.now();
  let sent = 0;
  let turns = 0;
  await new Promise<void>((resolve) => {
    const turn = setInterval(() => {
      const due = Math.min(total, Math.floor(((performance.now() - from) * rate) / 1_000 / burst) * burst);
      if (sent < due) turns += 1;
      for (; sent < due; sent++) {
        packet.writeDoubleLE(now(), TIME_AT);
        forward(packet);
      }
      if (sent < total) return;
      clearInterval(turn);
      resolve();
    }, TURN_MS);
  });
  return { packets: sent, turns };
}

async function measure(way: Way, load: Load) {
  const ring = new SharedArrayBuffer(RING_BYTES);
  const { port1, port2 } = new MessageChannel();
  const open = (part: Omit<Part, 'ring' | 'way' | 'load'>): Worker =>
    new Worker(new URL(import.meta.url), { workerData: { ...part, ring, way, load }, transferList: [part.port] });
  const receiver = open({ role: 'receiver', port: port1, udpPort: 0 });
  const [udpPort] = (await once(receiver, 'message')) as [number];
  const sender = open({ role: 'sender', port: port2, udpPort });
  const [warmUp] = (await once(sender, 'message')) as [Sent];
  const before = process.cpuUsage();
  const [sent] = (await once(sender, 'message')) as [Sent];
  await new Promise((resolve) => setTimeout(resolve, 200));
  const { user, system } = process.cpuUsage(before);
  receiver.postMessage('report', []);
  const [latencies] = (await once(receiver, 'message')) as [Float64Array];
  await Promise.all([sender.terminate(), receiver.terminate()]);
  const warm = latencies.subarray(warmUp.packets);
  warm.sort();
  const at = (share: number): number => warm[Math.floor(warm.length * share)] ?? NaN;
  const arrived = latencies.length / (warmUp.packets + sent.packets);
  return { way, sent, us: (user + system) / sent.packets, arrived, p50: at(0.5), p99: at(0.99) };
}

async function compare(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rate: { type: 'string', default: '10000' },
      burst: { type: 'string', default: '1' },
      seconds: { type: 'string', default: '4' },
      rounds: { type: 'string', default: '3' },
    },
  });
  const load = { rate: Number(values.rate), burst: Number(values.burst), seconds: Number(values.seconds) };
  const costs: number[] = [];
  for (let round = 1; round <= Number(values.rounds); round++) {
    const rows = [];
    for (const way of WAYS) rows.push(await measure(way, load));
    const base = rows[0]!.us;
    costs.push(rows[1]!.us - base);
    printTable(
      `Round ${round}: ${load.rate} packets/s in bursts of ${load.burst}`,
      rows.slice(1).map(({ way, sent, us, arrived, p50, p99 }) => ({
        way,
        'us a packet': (us - base).toFixed(2),
        'us a turn': (((us - base) * sent.packets) / sent.turns).toFixed(0),
        arrived: `${(100 * arrived).toFixed(1)} %`,
        'p50 / p99, ms': `${p50.toFixed(3)} / ${p99.toFixed(3)}`,
      })),
    );
  }
  const median = costs.toSorted((a, b) => a - b)[costs.length >> 1] ?? Number.NaN;
  printVerdict(`a crossing by ${WAYS[1]}, median of the rounds`, median, { must: 3, aim: 2, unit: ' us' });
}

if (isMainThread) {
  await compare();
} else {
  const part = workerData as Part;
  const parent = parentPort!;
  if (part.role === 'sender') {
    const forward = await openSender(part);
    parent.postMessage(await send(forward, { ...part.load, seconds: WARM_UP_SECONDS }), []);
    parent.postMessage(await send(forward, part.load), []);
  } else {
    const latencies: number[] = [];
    parent.once('message', () => parent.postMessage(Float64Array.from(latencies), []));
    const take = (packet: Buffer): void => void latencies.push(now() - packet.readDoubleLE(TIME_AT));
    parent.postMessage(await openReceiver(part, take), []);
  }
}
