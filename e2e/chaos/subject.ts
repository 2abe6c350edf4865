import type { LabNode } from '../cluster/lab-cluster.js';

/** Time in which a member heals after a fault: a lost link is noticed within 10 s and dialled again within 15 s. */
const HEALING_MS = 30_000;

/** A node of the run, and when it was troubled. */
export class Subject {
  /** Number of its current process; a new process has none of the old one's rooms. */
  process = 0;
  readonly #troubles: { readonly sinceMs: number; untilMs: number }[] = [];

  constructor(
    readonly node: LabNode,
    readonly name: string,
  ) {}

  get isTroubled(): boolean {
    return this.#troubles.some(({ untilMs }) => untilMs === Infinity);
  }

  /** Begins a trouble, and returns what ends it. */
  trouble(sinceMs: number): (endMs: number) => void {
    const trouble = { sinceMs, untilMs: Infinity };
    this.#troubles.push(trouble);
    return (endMs) => (trouble.untilMs = endMs + HEALING_MS);
  }

  /** Returns true if it was healthy and healed all the time. */
  wasCalm(sinceMs: number, untilMs: number): boolean {
    return this.#troubles.every((trouble) => trouble.untilMs < sinceMs || trouble.sinceMs > untilMs);
  }
}

/** Returns the nodes that are healthy and healed now: the rules judge nothing between others. */
export function calmOf(subjects: readonly Subject[], nowMs: number): Subject[] {
  return subjects.filter((subject) => subject.wasCalm(nowMs, nowMs));
}

/** Returns true while most nodes are calm. */
export function areMostCalm(subjects: readonly Subject[], nowMs: number): boolean {
  return calmOf(subjects, nowMs).length * 2 > subjects.length;
}
