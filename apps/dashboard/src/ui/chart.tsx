export interface ChartProps {
  readonly label: string;
  /** Newest last. */
  readonly values: readonly number[];
  /** Number of values that the chart has room for. */
  readonly length: number;
  /** Returns the text of a value, with its unit. */
  readonly text: (value: number) => string;
  /** Minimum top of the chart, so that small values look small. */
  readonly least: number;
}

const WIDTH = 160;
const HEIGHT = 36;

/** A line over time, with its newest value. */
export function Chart({ label, values, length, text, least }: ChartProps) {
  const top = Math.max(least, ...values) * 1.1;
  const step = WIDTH / (length - 1);
  const from = WIDTH - (values.length - 1) * step;
  const points = values.map(
    (value, i) => `${(from + i * step).toFixed(1)},${(HEIGHT - (value / top) * HEIGHT).toFixed(1)}`,
  );
  const newest = values.at(-1);
  return (
    <figure className="chart">
      <figcaption>
        <span>{label}</span> <strong>{newest === undefined ? '–' : text(newest)}</strong>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {points.length > 1 && (
          <>
            <polygon className="area" points={`${from.toFixed(1)},${HEIGHT} ${points.join(' ')} ${WIDTH},${HEIGHT}`} />
            <polyline className="line" points={points.join(' ')} />
          </>
        )}
      </svg>
    </figure>
  );
}

/** Returns a bit rate as text. */
export function bitrate(bps: number): string {
  return bps >= 1e6 ? `${(bps / 1e6).toFixed(1)} Mbit/s` : `${Math.round(bps / 1e3)} kbit/s`;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
}

export function milliseconds(ms: number): string {
  return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}
