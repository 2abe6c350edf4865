import { ConfigError, printableValue } from './errors.js';
import type { PortMapping, PortRange } from './grammar.js';
import type { Reader } from './reader.js';
import type { AdvertisedPorts } from './settings.js';

const NAME = 'JF_WEBRTC_ADVERTISED_PORTS';
const RANGE = 'JF_WEBRTC_TURN_PORT_RANGE';
const MAX_PORT = 65_535;

/**
 * Returns the ports that clients reach behind a port mapping; null without one.
 *
 * @throws ConfigError for a mapping that sends clients of two workers to one port, or to none
 */
export function loadAdvertisedPorts(reader: Reader, range: PortRange): AdvertisedPorts | null {
  const mapping = reader.read('advertisedPorts');
  if (mapping === undefined) return null;
  const fault = range.min === 0 ? unknownPorts(range) : faultOf(mapping, range);
  if (fault !== undefined) throw new ConfigError(NAME, `${NAME}=${printableValue(textOf(mapping), false)} ${fault}`);
  if (typeof mapping === 'number') return { offset: mapping, listed: new Map() };

  return { offset: 0, listed: new Map(mapping) };
}

function unknownPorts(range: PortRange): string {
  return `needs workers with known ports: set ${RANGE} to those that are mapped, instead of ${rangeText(range)}`;
}

/** Returns what is wrong with a mapping, and what to do. */
function faultOf(mapping: PortMapping, range: PortRange): string | undefined {
  if (typeof mapping === 'number') {
    const last = range.max + mapping;
    if (last <= MAX_PORT) return undefined;
    return `makes ${last} of worker port ${range.max}: end ${RANGE} at ${MAX_PORT - mapping} or below, or take a smaller offset`;
  }
  const listed = new Map<number, number>();
  const workerOf = new Map<number, number>();
  for (const [worker, advertised] of mapping) {
    const [before, other] = [listed.get(worker), workerOf.get(advertised)];
    if (before !== undefined)
      return `has two entries for worker port ${worker}, ${before} and ${advertised}: leave one of them`;
    if (other !== undefined)
      return `advertises ${advertised} for worker ports ${other} and ${worker}: give each a port of its own`;
    listed.set(worker, advertised);
    workerOf.set(advertised, worker);
  }
  const isInRange = (port: number): boolean => port >= range.min && port <= range.max;
  for (const [worker, advertised] of mapping) {
    if (isInRange(advertised) && !listed.has(advertised))
      return `advertises ${advertised} for worker port ${worker}, and worker port ${advertised} has no entry: add one, or take it out of ${RANGE}=${rangeText(range)}`;
  }
  if (mapping.some(([worker]) => isInRange(worker))) return undefined;

  return `has no entry for any worker port of ${RANGE}=${rangeText(range)}: map those ports`;
}

function textOf(mapping: PortMapping): string {
  return typeof mapping === 'number' ? `+${mapping}` : mapping.map((pair) => pair.join('=')).join(' ');
}

function rangeText({ min, max }: PortRange): string {
  return `${min}-${max}`;
}
