import { type LoadCodec, Publisher, type TrackKind } from '@bloom/participant';
import { connection } from './client.js';
import { cpuMicros, rss, threadMicros } from './process.js';
import type { ServerKind } from './servers/server.js';
import { Sink } from './sink.js';

export interface Load {
  kind: TrackKind;
  /** Codec of video; VP9 and AV1 have layers, all of which are forwarded. */
  codec: LoadCodec;
  subscribers: number;
  /** Packets per second into the server. */
  rate: number;
  /** Size of a datagram in bytes, without header extensions and SRTP tag. */
  bytes: number;
  /** All packets of a picture arrive at once, as from a camera. */
  frames: boolean;
  /** Number of measured windows per run, and the length of each. */
  windows: number;
  windowMs: number;
}

export interface Measurement {
  server: string;
  load: Load;
  /** The server's CPU time per packet that arrived at a subscriber, in microseconds; median of the windows. */
  microsPerPacket: number;
  /** The same without what the connected clients cost at rest: pings of their websockets, checks, timers. */
  microsBeyondRest: number;
  /** Share of one core. */
  cores: number;
  /** CPU time of the busiest thread, as a share of that of the two busiest, 0.5 to 1. */
  busierShare: number;
  packetsPerSecond: number;
  /** Share of packets that arrived, 0 to 1. */
  delivered: number;
  /** Retransmissions, copies and padding that arrived, which do not count as deliveries. */
  undelivered: { repairs: number; others: number };
  invalid: number;
  latencyMs: { p50: number; p99: number };
  /**
   * The server's CPU time per join, in milliseconds, over the second half of the subscribers, without the fixed cost of
   * those already there.
   */
  joinCpuMs: number;
  rssMiB: number;
  /** Share of a core used by the load generator; near 1, the measurement is unreliable. */
  generatorCores: number;
}

const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));
export const median = (values: readonly number[]): number => quantile(values, 0.5);
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}

/** Returns the fixed CPU cost of connected clients, in microseconds per millisecond. */
async function atRest(pid: number): Promise<number> {
  const from = { cpu: cpuMicros(pid), at: performance.now() };
  await sleep(1500);
  return (cpuMicros(pid) - from.cpu) / (performance.now() - from.at);
}

/** Measures one freshly started server under one load. */
export async function measure(kind: ServerKind, load: Load, progress: (text: string) => void): Promise<Measurement> {
  progress(`${kind.name}: starting`);
  const server = await kind.start(load.kind);
  const publisher = new Publisher(load.kind, load.bytes, load.codec);
  const connections = [];
  let sink: Sink | undefined;
  try {
    const source = connection(load.codec);
    connections.push(source);
    await server.publish(source, publisher);
    // Some servers announce a track only once it has media, which stops before the joins: only they must cost CPU.
    publisher.start(30);
    await sleep(300);
    publisher.stop();

    const cold = Math.floor(load.subscribers / 2);
    let before = { cpu: cpuMicros(server.pid), at: performance.now(), rest: 0 };
    const receivers = [];
    for (let joined = 0; joined < load.subscribers; joined += 1) {
      if (joined === cold) {
        const rest = await atRest(server.pid);
        before = { cpu: cpuMicros(server.pid), at: performance.now(), rest };
      }
      progress(`${kind.name}: ${joined + 1} of ${load.subscribers} subscribers`);
      const receiver = connection(load.codec);
      receivers.push(receiver);
      connections.push(receiver);
      await server.subscribe(receiver);
    }
    const joining = { micros: cpuMicros(server.pid) - before.cpu, ms: performance.now() - before.at };
    const allAtRest = await atRest(server.pid);
    const rest = (before.rest + allAtRest) / 2;
    const joinCpuMs = (joining.micros - rest * joining.ms) / (load.subscribers - cold) / 1000;

    sink = new Sink(receivers);
    progress(`${kind.name}: warming up at ${load.rate} packets/s in, ${load.rate * load.subscribers} out`);
    publisher.start(load.rate, load);
    await sleep(2500);
    sink.reset();

    const costs: number[] = [];
    const beyondRest: number[] = [];
    const shares: number[] = [];
    let arrived = 0;
    let wanted = 0;
    let generator = 0;
    const threads = threadMicros(server.pid);
    const startedAt = performance.now();
    for (let window = 0; window < load.windows; window += 1) {
      progress(`${kind.name}: measuring, window ${window + 1} of ${load.windows}`);
      const from = { cpu: cpuMicros(server.pid), packets: sink.packets, sent: publisher.sent, at: performance.now() };
      const own = cpuMicros(process.pid) + cpuMicros(sink.pid);
      await sleep(load.windowMs);
      const cpu = cpuMicros(server.pid) - from.cpu;
      const packets = sink.packets - from.packets;
      generator += cpuMicros(process.pid) + cpuMicros(sink.pid) - own;
      const elapsedMs = performance.now() - from.at;
      costs.push(cpu / packets);
      beyondRest.push((cpu - allAtRest * elapsedMs) / packets);
      shares.push(cpu / (elapsedMs * 1000));
      arrived += packets;
      wanted += (publisher.sent - from.sent) * load.subscribers;
    }
    const elapsedMs = performance.now() - startedAt;
    const spent = [...threadMicros(server.pid)].map(([thread, micros]) => micros - (threads.get(thread) ?? 0));
    const [busiest = 0, second = 0] = spent.toSorted((a, b) => b - a);
    return {
      server: kind.name,
      load,
      microsPerPacket: median(costs),
      microsBeyondRest: median(beyondRest),
      cores: median(shares),
      busierShare: busiest / (busiest + second),
      packetsPerSecond: (arrived / elapsedMs) * 1000,
      delivered: Math.min(1, arrived / wanted),
      undelivered: { repairs: sink.repairs, others: sink.others },
      invalid: sink.invalid,
      latencyMs: { p50: quantile(sink.latencies, 0.5) / 1000, p99: quantile(sink.latencies, 0.99) / 1000 },
      joinCpuMs,
      rssMiB: rss(server.pid) / 1024 / 1024,
      generatorCores: generator / (elapsedMs * 1000),
    };
  } finally {
    publisher.stop();
    await sink?.close();
    for (const pc of connections) await pc.close();
    await server.close();
  }
}
