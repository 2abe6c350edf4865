import { median, quantile } from '../sfu/measure.js';
import { cpuMicros } from '../sfu/process.js';
import { sleep, type Rooms } from './rooms.js';

export interface Figures {
  microsPerPacket: number;
  cores: number;
  packetsPerSecond: number;
  /** Share of packets that arrived, 0 to 1. */
  delivered: number;
  p50Ms: number;
  p99Ms: number;
  generatorCores: number;
}

/** Measures the server at this rate, after `warmUpMs`. */
export async function figuresAt(
  rooms: Rooms,
  packetsPerSecondOut: number,
  { warmUpMs = 2000, windows = 3, windowMs = 2000 } = {},
): Promise<Figures> {
  const { sink, server } = rooms;
  rooms.start(packetsPerSecondOut);
  await sleep(warmUpMs);
  sink.reset();
  const costs: number[] = [];
  const shares: number[] = [];
  const generator: number[] = [];
  const first = { packets: sink.packets, wanted: rooms.wanted, at: performance.now() };
  for (let window = 0; window < windows; window += 1) {
    const before = { cpu: cpuMicros(server.pid), own: own(sink.pid), packets: sink.packets, at: performance.now() };
    await sleep(windowMs);
    const elapsedMicros = (performance.now() - before.at) * 1000;
    const cpu = cpuMicros(server.pid) - before.cpu;
    costs.push(cpu / (sink.packets - before.packets));
    shares.push(cpu / elapsedMicros);
    generator.push((own(sink.pid) - before.own) / elapsedMicros);
  }
  const packets = sink.packets - first.packets;
  return {
    microsPerPacket: median(costs),
    cores: median(shares),
    packetsPerSecond: packets / ((performance.now() - first.at) / 1000),
    delivered: Math.min(1, packets / (rooms.wanted - first.wanted)),
    p50Ms: quantile(sink.latencies, 0.5) / 1000,
    p99Ms: quantile(sink.latencies, 0.99) / 1000,
    generatorCores: median(generator),
  };
}

function own(sinkPid: number): number {
  return cpuMicros(process.pid) + cpuMicros(sinkPid);
}

export function row(figures: Figures): Record<string, string> {
  return {
    'us/packet': figures.microsPerPacket.toFixed(2),
    'pps out': figures.packetsPerSecond.toFixed(0),
    cores: figures.cores.toFixed(2),
    'delivered %': (figures.delivered * 100).toFixed(2),
    'p50 ms': figures.p50Ms.toFixed(2),
    'p99 ms': figures.p99Ms.toFixed(2),
    'load gen cores': figures.generatorCores.toFixed(2),
  };
}
