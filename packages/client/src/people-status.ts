import type { MeasuredClient, Measurement, PersonStatus } from './measurement.js';

const PERIOD_MS = 1_000;

/**
 * Samples once a second who is speaking and how good each connection is, until the returned function is called. Calls
 * `changed` with everyone in the room: speakers first, loudest first, then this participant and the others in order of
 * arrival.
 */
export function watchPeople(client: MeasuredClient, changed: (people: readonly PersonStatus[]) => void): () => void {
  let measurement: Measurement | undefined;
  let before = '';
  let stopped = false;
  const measure = async (): Promise<void> => {
    measurement ??= new (await import('./measurement.js')).Measurement(PERIOD_MS);
    const people = measurement.add(client, await client.stats());
    const now = JSON.stringify(people);
    if (stopped || now === before) return;
    before = now;
    changed(people);
  };
  // A connection that closes during the measurement has nothing to report; the next one does. The code is loaded again
  // if it did not arrive.
  const timer = setInterval(() => void measure().catch(() => undefined), PERIOD_MS);
  return () => {
    stopped = true;
    clearInterval(timer);
  };
}
