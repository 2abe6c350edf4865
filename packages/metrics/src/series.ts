import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Returns constructors of series that belong to this registry. */
export function seriesOf(registry: Registry) {
  const registers = [registry];

  return {
    counter: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Counter<L>({ name, help, registers, labelNames }),
    gauge: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Gauge<L>({ name, help, registers, labelNames }),
    histogram: <L extends string>(
      name: string,
      { help, buckets }: { help: string; buckets: number[] },
      ...labelNames: L[]
    ) => new Histogram<L>({ name, help, buckets, registers, labelNames }),
  };
}
