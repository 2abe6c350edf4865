import type { Intruder } from './intruder.js';
import type { Random } from './random.js';

/** What an attack can use: a participant's access, and the addresses that a stranger knows. */
export interface Ground {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly host: string;
  /** The node's process. */
  readonly pid: number;
  /** TCP port of the relay. */
  readonly relayTcpPort: number;
  /** TCP port of the metrics. */
  readonly metricsPort: number;
  /** Room of the call that intruders join. */
  readonly room: string;
  readonly random: Random;
  /** Returns a token for a new participant of the room. */
  newToken(): Promise<string>;
  /** Adds a participant to the room, who leaves after the attack. */
  intruder(metadata?: unknown): Promise<Intruder>;
  /** Adds a harmless participant that reads at this rate and must survive the attack. */
  bystander(bytesPerSecond?: number): Promise<Intruder>;
  /** Runs after the attack, in reverse order. */
  after(release: () => void | Promise<void>): void;
  api(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }>;
}

/** An attack by one client, which throws if the node answers in a forbidden way. */
export interface Attack {
  /** Completes "survives ...". */
  readonly title: string;
  /** Weight in random scripts; 1 by default. */
  readonly weight?: number;
  /** Longest pause of a picture that it may cause; by default the arena's bound. */
  readonly maxGapMs?: number;
  /** Memory that the node may add during the attack, in MiB. */
  readonly maxGrowthMb?: number;
  run(ground: Ground): Promise<void>;
}
