import { EXIT, Failure } from '../exit.js';

export interface Plan {
  readonly rooms: number;
  /** People in each room. */
  readonly people: number;
  /** People of each room who publish a video. */
  readonly publishers: number;
  readonly minutes: number;
  /** Bitrate of each video. */
  readonly kbps: number;
}

/**
 * Default limit on forwarded tracks, so that a typing error does not harm anyone, such as the owner of another server.
 */
export const DEFAULT_CEILING = 200;
const MAX_STEPS = 10;

/** Returns how many tracks the server forwards at the end: tracks times their subscribers, as placement counts. */
export function forwardedTracks({ rooms, people, publishers }: Plan): number {
  return rooms * publishers * (people - 1);
}

/** @throws Failure unless the plan fits the ceiling */
export function checkPlan(plan: Plan, ceiling: number): void {
  if (plan.publishers > plan.people) {
    throw new Failure(EXIT.usage, `of ${plan.people} people in a room ${plan.publishers} cannot publish`);
  }
  const tracks = forwardedTracks(plan);
  if (tracks > ceiling) {
    throw new Failure(EXIT.usage, `the server would forward ${tracks} tracks, and the ceiling is ${ceiling}`, {
      advice: `if nobody else needs this server, say --ceiling ${tracks}`,
    });
  }
}

/** Returns how many people are in all rooms together after each step of the ramp. */
export function rampOf({ rooms, people }: Plan): number[] {
  const total = rooms * people;
  // A single person has nobody to send to.
  const steps = Math.min(MAX_STEPS, Math.max(1, Math.floor(total / 2)));

  return Array.from({ length: steps }, (_, i) => Math.max(2, Math.round((total * (i + 1)) / steps)));
}
