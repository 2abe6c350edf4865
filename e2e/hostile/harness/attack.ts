import type { Intruder } from './intruder.js';
import type { Random } from './random.js';

/** What an attack may use: the way in of a participant, and the addresses that a stranger knows. */
export interface Ground {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly host: string;
  /** TCP port of the relay. */
  readonly relayTcpPort: number;
  /** TCP port of the metrics. */
  readonly metricsPort: number;
  /** Room with a call in which intruders are participants. */
  readonly room: string;
  readonly random: Random;
  /** A token for a new participant of the room. */
  newToken(): Promise<string>;
  /** A participant of the room. Leaves after the attack. */
  intruder(metadata?: unknown): Promise<Intruder>;
  /** A harmless participant of the room that reads at this rate and must survive the attack. */
  bystander(bytesPerSecond?: number): Promise<Intruder>;
  /** Runs after the attack, in reverse order. */
  after(release: () => void | Promise<void>): void;
  api(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }>;
}

/** Something that one client does to the node. Throws when the node answers it in a way that it must not. */
export interface Attack {
  /** Completes "survives ...". */
  readonly title: string;
  /** How often a random script chooses it; 1 unless given. */
  readonly weight?: number;
  /** Longest pause of a picture that it may cause; the arena's own bound unless given. */
  readonly maxGapMs?: number;
  /** Memory that the node may take during the attack, in MiB. */
  readonly maxGrowthMb?: number;
  run(ground: Ground): Promise<void>;
}
