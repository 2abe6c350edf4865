import { InvalidArgumentError } from 'commander';

const UNITS = { ms: 1, s: 1_000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Parses `500ms`, `20s`, `5m`, `30min`, `2h`, `1d` into milliseconds. */
export function duration(text: string): number {
  const found = /^(\d+(?:\.\d+)?)(ms|s|min|m|h|d)$/.exec(text);
  if (found === null) throw new InvalidArgumentError(`${JSON.stringify(text)} is not a duration; write 20s, 5m or 2h.`);
  return Math.round(Number(found[1]) * UNITS[found[2] as keyof typeof UNITS]);
}

/** Maximum time limit that a node accepts. */
export const MAX_TIMEOUT_MS = 60_000;

/** Parses a time limit that a node accepts. */
export function timeout(text: string): number {
  const ms = duration(text);
  if (ms < 1 || ms > MAX_TIMEOUT_MS) throw new InvalidArgumentError(`${JSON.stringify(text)} is not from 1ms to 1m.`);
  return ms;
}

export function whole(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < least || value > most) {
      throw new InvalidArgumentError(`${JSON.stringify(text)} is not an integer from ${least} to ${most}.`);
    }
    return value;
  };
}

export function decimal(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+(?:\.\d+)?$/.test(text) || value < least || value > most) {
      throw new InvalidArgumentError(`${JSON.stringify(text)} is not a number from ${least} to ${most}.`);
    }
    return value;
  };
}

/** Parses a duration into whole seconds, the unit of the HTTP API. */
export function seconds(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Math.round(duration(text) / 1_000);
    if (value < least || value > most) {
      throw new InvalidArgumentError(`${JSON.stringify(text)} is not from ${least}s to ${most / 86_400}d.`);
    }
    return value;
  };
}
