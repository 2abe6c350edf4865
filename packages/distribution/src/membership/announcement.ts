// What a member announces with its hello: its release and the versions of the member protocol that it speaks.
// docs/reference/node-transport.md has the rule and the meaning of each version.
import { atom, mapGet, type Term, Tuple, tuple } from '@bloom/etf';

/** Lowest and highest version of the member protocol that a node speaks. */
export interface Protocols {
  readonly min: number;
  readonly max: number;
}

/**
 * Versions that this code speaks. A change that an older member would not understand gets the next number, and is used
 * only between members that speak it (`DistributionNode.speaks`).
 */
export const PROTOCOLS: Protocols = { min: 1, max: 3 };

export interface Announcement {
  /** null: announced none, like releases up to 0.1.0. */
  readonly release: string | null;
  readonly protocols: Protocols;
  /**
   * Milliseconds since the node's start. Of two nodes without a common version the older one stays. Infinity: not
   * announced.
   */
  readonly upMs: number;
}

/** What a member speaks if it announces nothing. */
export const UNANNOUNCED: Announcement = {
  release: null,
  protocols: { min: 1, max: 1 },
  upMs: Number.POSITIVE_INFINITY,
};

/** What a member announces. Tools announce nothing and are bound by nothing. */
export interface Spoken {
  readonly release: string;
  readonly protocols: Protocols;
}

const MAX_NUMBER = 65_535;
/** Semantic versioning, with room for build metadata. */
const RELEASE = /^[\w.+-]{1,64}$/;

const PROTOCOL = atom('protocol');
const RELEASED = atom('release');
const UP = atom('up');

/** Returns the capabilities of a hello that make this announcement. */
export function capabilitiesOf({ release, protocols }: Spoken, upMs: number): { [name: string]: Term } {
  return { protocol: tuple(protocols.min, protocols.max), release, up: Math.round(upMs) };
}

/** Reads the capabilities of a hello. Returns undefined for an invalid announcement. */
export function announcementOf(caps: Term): Announcement | undefined {
  const [range, release, upMs] = [mapGet(caps, PROTOCOL), mapGet(caps, RELEASED), mapGet(caps, UP)];
  if (range === undefined && release === undefined && upMs === undefined) return UNANNOUNCED;
  if (!(range instanceof Tuple) || range.elements.length !== 2) return undefined;
  const [min, max] = range.elements;
  if (!isNumber(min) || !isNumber(max) || min > max) return undefined;
  if (typeof release !== 'string' || !RELEASE.test(release)) return undefined;
  if (typeof upMs !== 'number' || !Number.isSafeInteger(upMs) || upMs < 0) return undefined;
  return { release, protocols: { min, max }, upMs };
}

/** Returns the highest version that both speak, or undefined when there is none. */
export function commonProtocol(ours: Protocols, theirs: Protocols): number | undefined {
  const highest = Math.min(ours.max, theirs.max);
  return highest >= Math.max(ours.min, theirs.min) ? highest : undefined;
}

/** Returns why two nodes cannot be in one cluster. `theirs` undefined: the other node's announcement was invalid. */
export function noCommonProtocol(node: string, ours: Spoken, theirs: Announcement | undefined): string {
  const own = `this node of release ${ours.release} speaks ${range(ours.protocols)}`;
  if (theirs === undefined) return `${node} announces no readable protocol, and ${own}`;
  const release = theirs.release ?? '0.1.0 or earlier';
  return (
    `${node} of release ${release} speaks ${range(theirs.protocols)}, ${own}: they cannot be members of one cluster; ` +
    'docs/guide/upgrading.md says which releases can'
  );
}

function range({ min, max }: Protocols): string {
  return min === max ? `protocol ${min}` : `protocols ${min} to ${max}`;
}

function isNumber(value: Term): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_NUMBER;
}
