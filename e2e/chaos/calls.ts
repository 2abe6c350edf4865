// Calls of two people, one of whom publishes, and the rule for their media.
import { setTimeout as delay } from 'node:timers/promises';
import { openConnection, FastMedia, FastSource, signal } from '@bloom/participant';
import { WebSocket } from 'ws';
import type { Random } from '../hostile/harness/random.js';
import type { Clients } from './clients.js';
import type { KnownRoom } from './rooms.js';
import { calmOf, type Subject } from './subject.js';
import type { Timeline } from './timeline.js';

/** Longest pause of a picture of 30 frames per second between healthy nodes; a node may be short of CPU for a while. */
const PAUSE_MS = 3_000;
/** Longest time to a connection, and from there to the first picture. */
const JOIN_MS = 15_000;
const TICK_MS = 20;
const PAYLOAD_TYPE = 96;

class Person {
  readonly #pc = openConnection();
  readonly #socket: WebSocket;
  readonly #source: FastSource | undefined;
  #media: FastMedia | undefined;
  isCut = false;

  private constructor(url: string, publishes: boolean) {
    this.#socket = new WebSocket(`${url.replace('http', 'ws')}/socket/peer/websocket`);
    this.#source = publishes ? new FastSource({ payloadType: PAYLOAD_TYPE, bitrateBps: 100_000 }) : undefined;
  }

  /** Joins and resolves when media can flow. */
  static async join(url: string, token: string, publishes: boolean): Promise<Person> {
    const person = new Person(url, publishes);
    const late = delay(JOIN_MS, undefined, { ref: false }).then(() => Promise.reject(new Error('no media')));
    try {
      await Promise.race([signal(person.#pc, person.#socket, { token, publisher: person.#source }), late]);
    } catch (error) {
      await person.close();
      throw error;
    }
    person.#socket.on('close', () => (person.isCut = true));
    person.#media = new FastMedia(person.#pc, { payloadType: PAYLOAD_TYPE, sampleEvery: 20 });
    person.#source?.start(person.#media, performance.now());
    return person;
  }

  /** Sends what is due and returns the number of packets that arrived. */
  tick(): number {
    const nowMs = performance.now();
    this.#source?.tick(nowMs);
    this.#media?.sendFeedback(nowMs);
    return this.#media?.takeArrivals().packets ?? 0;
  }

  async close(): Promise<void> {
    this.#source?.stop();
    this.#socket.terminate();
    await this.#pc.close();
  }
}

export class Calls {
  /** Calls that were connected. */
  count = 0;
  /** People who joined through healthy nodes. */
  joins = 0;
  /** Time in which pictures between healthy nodes were watched. */
  judgedMs = 0;
  /** Longest pause of one of them. */
  worstPauseMs = 0;
  readonly #options: { subjects: readonly Subject[]; clients: Clients; random: Random; timeline: Timeline };
  #isOver = false;
  readonly #loops: Promise<void>[];

  constructor(
    parallel: number,
    options: { subjects: readonly Subject[]; clients: Clients; random: Random; timeline: Timeline },
  ) {
    this.#options = options;
    this.#loops = Array.from({ length: parallel }, () => this.#loop());
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
  }

  async #loop(): Promise<void> {
    while (!this.#isOver) {
      await delay(1_000);
      const room = this.#options.clients.hold();
      if (room === undefined) continue;
      await this.#call(room);
      await this.#options.clients.delete(room);
    }
  }

  /** Lets two people meet in a room of a calm node, through calm nodes: nothing is judged between others. */
  async #call(room: KnownRoom): Promise<void> {
    const { random, subjects, timeline } = this.#options;
    const sinceMs = timeline.nowMs;
    const calm = calmOf(subjects, sinceMs);
    const doors = [random.pick(calm), random.pick(calm)];
    const involved = [room.owner, ...doors];
    const wereCalm = (): boolean => involved.every((subject) => subject.wasCalm(sinceMs, timeline.nowMs));
    const people: Person[] = [];
    const label = `call in ${room.id} on ${room.owner.name} through ${doors.map(({ name }) => name).join(' and ')}`;
    try {
      for (const [index, door] of doors.entries()) {
        const { token } = await door.node.api.addPeer(room.id);
        people.push(await Person.join(door.node.url, token, index === 0));
        if (wereCalm()) this.joins += 1;
      }
      this.count += 1;
      timeline.note(`${label} plays`);
      await this.#play(people, 5_000 + random.next() * 40_000, wereCalm);
      timeline.note(`${label} ends`);
    } catch (error) {
      if (wereCalm()) timeline.broken(`${label} failed: ${String(error)}`);
      else timeline.note(`${label} failed: ${String(error)}`);
    } finally {
      await Promise.all(people.map((person) => person.close()));
    }
  }

  /** Plays for a time, or until a node of the call is troubled. Throws when healthy nodes let a picture pause. */
  async #play(people: readonly Person[], ms: number, wereCalm: () => boolean): Promise<void> {
    const endMs = performance.now() + ms;
    let lastMs = performance.now();
    let tickedMs = lastMs;
    let hasBegun = false;
    while (performance.now() < endMs && wereCalm() && !this.#isOver) {
      await delay(TICK_MS);
      const nowMs = performance.now();
      // A pause of this program is none of the nodes'.
      const tickMs = nowMs - tickedMs;
      lastMs += Math.max(0, tickMs - 2 * TICK_MS);
      tickedMs = nowMs;
      const [, arrived = 0] = people.map((person) => person.tick());
      if (people.some(({ isCut }) => isCut)) throw new Error('a websocket was closed');
      if (!wereCalm()) return;
      const pauseMs = nowMs - lastMs;
      if (hasBegun) {
        this.judgedMs += tickMs;
        this.worstPauseMs = Math.max(this.worstPauseMs, pauseMs);
        if (pauseMs > PAUSE_MS) throw new Error(`the picture has paused for ${pauseMs.toFixed(0)} ms`);
      } else if (pauseMs > JOIN_MS) throw new Error('no picture');
      if (arrived > 0) [lastMs, hasBegun] = [nowMs, true];
    }
  }
}
