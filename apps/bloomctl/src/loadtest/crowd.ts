import { setTimeout as pause } from 'node:timers/promises';
import { Seats } from '../outside/seats.js';
import type { Server } from '../outside/server.js';
import type { Token } from '../outside/token.js';
import { LoadPerson } from './load-person.js';
import type { Plan } from './plan.js';
import type { Window } from './limit.js';

/** Pictures are sent within this time of when they are due, ms. */
const TICK_MS = 4;
const FEEDBACK_MS = 80;
/**
 * Packets in flight at the end of a measurement count if they arrive within this time, during which nobody sends, ms.
 */
const DRAIN_MS = 300;

interface Room {
  readonly seats: Seats;
  readonly people: LoadPerson[];
}

interface Mark {
  readonly atMs: number;
  readonly cpu: NodeJS.CpuUsage;
  /** Packets that the people of each room should have received so far. */
  readonly wanted: number;
}

/** The people of a load test in their rooms, publishers first, and their media. */
export class Crowd {
  readonly #server: Server;
  readonly #token: Token;
  readonly #plan: Plan;
  readonly #rooms: Room[] = [];
  readonly #timers: NodeJS.Timeout[];
  #isSending = true;
  #closed = false;

  constructor(server: Server, token: Token, plan: Plan) {
    this.#server = server;
    this.#token = token;
    this.#plan = plan;
    this.#timers = [
      setInterval(() => this.#tick(), TICK_MS),
      setInterval(() => this.#each((person, nowMs) => person.sendFeedback(nowMs)), FEEDBACK_MS),
    ];
  }

  get size(): number {
    return this.#rooms.reduce((sum, { people }) => sum + people.length, 0);
  }

  /** Tracks times their subscribers. */
  get forwardedTracks(): number {
    return this.#rooms.reduce((sum, { people }) => sum + publishersOf(people).length * (people.length - 1), 0);
  }

  /** Lets people join one after another up to this number. @throws Failure, LayerFailure */
  async grow(size: number): Promise<void> {
    while (this.size < size && !this.#closed) {
      let room = this.#rooms.at(-1);
      if (room === undefined || room.people.length >= this.#plan.people) {
        room = { seats: new Seats(this.#server, this.#token), people: [] };
        await room.seats.open();
        if (this.#closed) return await room.seats.close();
        this.#rooms.push(room);
      }
      const seat = await room.seats.add();
      if (this.#closed) return;
      const person = new LoadPerson(seat, {
        kbps: this.#plan.kbps,
        publishes: room.people.length < this.#plan.publishers,
        isLocal: /^(?:localhost|127\.)/.test(this.#server.url.hostname),
      });
      // Closed with the others even if it never gets in.
      room.people.push(person);
      await person.join();
    }
  }

  /** Measures until `lasts` resolves. Nobody may join in the meantime. Rejects like `lasts`. */
  async measure(lasts: () => Promise<void>): Promise<Window> {
    try {
      await this.#drain();
      this.#each((person) => person.takeArrivals());
      const mark: Mark = { atMs: performance.now(), cpu: process.cpuUsage(), wanted: this.#wanted() };
      this.#isSending = true;
      await lasts();
      const elapsedMs = Math.max(1, performance.now() - mark.atMs);
      await this.#drain();
      return this.#window(mark, elapsedMs);
    } finally {
      this.#isSending = true;
    }
  }

  async #drain(): Promise<void> {
    this.#isSending = false;
    await pause(DRAIN_MS);
  }

  #window(mark: Mark, elapsedMs: number): Window {
    const { user, system } = process.cpuUsage(mark.cpu);
    const delays: number[] = [];
    const sum = { packets: 0, bytes: 0, invalid: 0 };
    this.#each((person) => {
      const { packets = 0, bytes = 0, invalid = 0, delaysMs = [] } = person.takeArrivals() ?? {};
      sum.packets += packets;
      sum.bytes += bytes;
      sum.invalid += invalid;
      for (const delay of delaysMs) delays.push(rounded(delay));
    });
    delays.sort((a, b) => a - b);
    const quantile = (q: number): number | null =>
      delays[Math.min(delays.length - 1, Math.floor(delays.length * q))] ?? null;

    return {
      wanted: this.#wanted() - mark.wanted,
      arrived: sum.packets,
      invalid: sum.invalid,
      p50Ms: quantile(0.5),
      p99Ms: quantile(0.99),
      mbps: rounded((sum.bytes * 8) / elapsedMs / 1_000),
      packetsPerS: Math.round((sum.packets * 1_000) / elapsedMs),
      ownBusy: rounded((user + system) / 1_000 / elapsedMs),
    };
  }

  /** Ends all people and removes all rooms. Idempotent; never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(
      this.#rooms.splice(0).map(async ({ seats, people }) => {
        await Promise.all(people.map((person) => person.close()));
        await seats.close();
      }),
    );
  }

  #tick(): void {
    if (this.#isSending) this.#each((person, nowMs) => person.tick(nowMs));
  }

  #wanted(): number {
    let wanted = 0;
    for (const { people } of this.#rooms) {
      for (const { sent } of publishersOf(people)) wanted += sent * (people.length - 1);
    }

    return wanted;
  }

  #each(run: (person: LoadPerson, nowMs: number) => void): void {
    const nowMs = performance.now();
    for (const { people } of this.#rooms) for (const person of people) run(person, nowMs);
  }
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

function publishersOf(people: readonly LoadPerson[]): LoadPerson[] {
  return people.filter(({ publishes }) => publishes);
}
