/** Human-readable numbers. Times are UTC, as in the logs of the nodes. */

const two = (n: number): string => String(Math.floor(n)).padStart(2, '0');

/** `02:11:08`, or from one day on `6d 02h`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const days = Math.floor(seconds / 86_400);
  const hours = Math.floor((seconds % 86_400) / 3_600);
  if (days > 0) return `${days}d ${two(hours)}h`;
  return `${two(hours)}:${two((seconds % 3_600) / 60)}:${two(seconds % 60)}`;
}

/** `0.4 ms`, `790 ms`, `9.4 s`, `24 min`, `3 h 05 min`, `6d 02h`. */
export function span(ms: number): string {
  const length = Math.abs(ms);
  if (length < 10) return `${length === 0 ? 0 : ms.toFixed(1)} ms`;
  if (length < 1_000) return `${Math.round(ms)} ms`;
  if (length < 9_950) return `${ms % 1_000 === 0 ? ms / 1_000 : (ms / 1_000).toFixed(1)} s`;
  if (length < 60_000) return `${Math.round(ms / 1_000)} s`;
  if (length < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  if (length < 86_400_000) return `${Math.floor(length / 3_600_000)} h ${two((length % 3_600_000) / 60_000)} min`;
  return age(ms);
}

/** Milliseconds, with one decimal below 100; `–` if unknown. */
export function millis(ms: number | null): string {
  if (ms === null) return '–';
  return ms < 100 ? ms.toFixed(1) : String(Math.round(ms));
}

/** `118`, `41k`, `1.2M`. */
export function short(n: number | null): string {
  if (n === null) return '–';
  if (Math.abs(n) < 9_950)
    return n !== 0 && Math.abs(n) < 10 && !Number.isInteger(n) ? n.toFixed(1) : String(Math.round(n));
  if (Math.abs(n) < 999_500) return `${Math.round(n / 1_000)}k`;
  return `${(n / 1_000_000).toFixed(1)}M`;
}

/** `812 MB`. */
export function size(bytes: number | null): string {
  if (bytes === null) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${unit > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** `412` kb/s. */
export function kilobits(bps: number | null): string {
  return bps === null ? '–' : String(Math.round(bps / 1_000));
}

/** `0.61 Mb/s`. */
export function megabits(bps: number | null): string {
  return bps === null ? 'not known' : `${(bps / 1_000_000).toFixed(2)} Mb/s`;
}

/** Percentage of a share from 0 to 1, such as `0.8 %`. */
export function percent(part: number | null, digits = 0): string {
  return part === null ? '–' : `${(part * 100).toFixed(digits)} %`;
}

/** `02:11:09.104` */
export function timeOfDay(at: number): string {
  return new Date(at).toISOString().slice(11, 23);
}

/** `02:11:09` */
export function clock(at: number): string {
  return new Date(at).toISOString().slice(11, 19);
}

/** `a` of `a@sfu-1.internal`. */
export function alive(node: string): string {
  return node.split('@')[0] as string;
}

/** `a@sfu-1` of `a@sfu-1.internal`; IP addresses are kept whole. */
export function shortNode(node: string): string {
  const [name, host = ''] = node.split('@');
  if (host === '' || /^[\d.]+$|:/.test(host)) return node;
  return `${name}@${host.split('.')[0]}`;
}

/** `3 rooms`, `1 room`. */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}
