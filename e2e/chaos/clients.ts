// Backends that create, look up, list and delete rooms through any node, and the rules for the answers they get.
import { setTimeout as delay } from 'node:timers/promises';
import type { Answer } from '../harness/api.js';
import type { Random } from '../hostile/harness/random.js';
import { type KnownRoom, roomsForCalls } from './rooms.js';
import type { Subject } from './subject.js';
import type { Timeline } from './timeline.js';

/** The SDKs give up a request after this time. */
const LIMIT_MS = 5_000;
/** Few ids, so that clients often want the same one. */
const IDS = ['kitchen', 'hall', 'attic'];
/** Rooms that are kept at the same time. */
const MAX_ROOMS = 40;
/** Documented refusals besides those that the rules look at. */
const REFUSALS: ReadonlySet<number> = new Set([400, 404, 503]);

interface Request {
  readonly asked: Subject;
  readonly label: string;
  readonly sinceMs: number;
  readonly untilMs: number;
  /** Undefined if there was none. */
  readonly answer: Answer | undefined;
}

export class Clients {
  readonly rooms = new Map<string, KnownRoom>();
  /** Times of requests to healthy nodes, in ms. */
  readonly timesMs: number[] = [];
  readonly statuses = new Map<number, number>();
  readonly #subjects: readonly Subject[];
  readonly #random: Random;
  readonly #timeline: Timeline;
  readonly #webhookUrl: string;
  #isOver = false;
  /** Ids that are being deleted, so that two rooms may have them one after the other. */
  readonly #leaving = new Set<string>();
  readonly #loops: Promise<void>[];

  constructor(
    subjects: readonly Subject[],
    { random, timeline, webhookUrl }: { random: Random; timeline: Timeline; webhookUrl: string },
  ) {
    this.#subjects = subjects;
    this.#random = random;
    this.#timeline = timeline;
    this.#webhookUrl = webhookUrl;
    this.#loops = Array.from({ length: 4 }, () => this.#loop());
  }

  /** Lets the clients finish their last requests. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
  }

  /** Gives a call one of the rooms, which only the call deletes from now on; undefined if there is none to judge. */
  hold(): KnownRoom | undefined {
    const free = roomsForCalls(this.rooms.values(), this.#timeline.nowMs);
    const room: KnownRoom | undefined = this.#random.pick(free);
    if (room !== undefined) room.isHeld = true;

    return room;
  }

  async #create(): Promise<void> {
    const hasWebhook = this.#random.next() < 0.3;
    const body = hasWebhook ? { webhookUrl: this.#webhookUrl } : {};
    const { answer, sinceMs, label } = await this.#send('POST', '/room', body);
    if (answer?.status !== 201) return;
    const { room, jellyfish_address: address } = answer.body.data;
    const owner = this.#subjects.find(({ node }) => node.address === address);
    if (owner === undefined) {
      this.#timeline.broken(`${label} was answered with ${address}, which is no node`);
      return;
    }
    const { process } = owner;
    const known: KnownRoom = { id: room.id, owner, process, sinceMs, hasWebhook, isHeld: false };
    this.rooms.set(known.id, known);
    await this.#mustHave(known);
  }

  async delete(room: KnownRoom): Promise<void> {
    const isFirst = room.deletedMs === undefined;
    room.deletedMs ??= this.#timeline.nowMs;
    const request = await this.#send('DELETE', `/room/${room.id}`);
    if (request.answer?.status === 204) room.endedMs = request.untilMs;
    else if (isFirst) this.#checkFound(room, request);
  }

  async #loop(): Promise<void> {
    while (!this.#isOver) {
      await delay(50 + this.#random.next() * 300);
      const known = [...this.rooms.values()].filter(({ deletedMs, isHeld }) => deletedMs === undefined && !isHeld);
      const room = this.#random.pick(known);
      const dice = this.#random.next();
      if (room === undefined || (dice < 0.35 && known.length < MAX_ROOMS)) await this.#create();
      else if (dice < 0.5 || known.length >= MAX_ROOMS) await this.delete(room);
      else if (dice < 0.75) this.#checkFound(room, await this.#send('GET', `/room/${room.id}`));
      else if (dice < 0.85) this.#checkListed(await this.#send('GET', '/room?scope=cluster'));
      else await this.#contend(this.#random.pick(IDS));
    }
  }

  /** Lets two nodes create a room of one id at once, then deletes it. */
  async #contend(roomId: string): Promise<void> {
    const sinceMs = this.#timeline.nowMs;
    const answers = await Promise.all([1, 2].map(() => this.#send('POST', '/room', { roomId })));
    const winners = answers.filter(({ answer }) => answer?.status === 201);
    const allCalm = this.#subjects.every((subject) => subject.wasCalm(sinceMs, this.#timeline.nowMs));
    if (winners.length > 1 && allCalm && !this.#leaving.has(roomId))
      this.#timeline.broken(`two clients created a room ${roomId} at once`);
    if (winners.length === 0) return;
    this.#leaving.add(roomId);
    await this.#send('DELETE', `/room/${roomId}`);
    this.#leaving.delete(roomId);
  }

  async #send(method: string, path: string, body?: unknown): Promise<Request> {
    const asked = this.#random.pick(this.#subjects);
    const label = `${asked.name} ${method} ${path}`;
    const sinceMs = this.#timeline.nowMs;
    const answer = await Promise.race([
      asked.node.api.request(method, path, body).catch(() => undefined),
      delay(3 * LIMIT_MS, undefined, { ref: false }),
    ]);
    const untilMs = this.#timeline.nowMs;
    const code = answer?.body?.errors ?? answer?.body?.data?.room?.id ?? '';
    this.#timeline.note(`${label} -> ${answer?.status ?? 'nothing'} ${code} in ${(untilMs - sinceMs).toFixed(0)} ms`);
    const status = answer?.status ?? 0;
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (asked.wasCalm(sinceMs, untilMs)) {
      this.timesMs.push(untilMs - sinceMs);
      if (untilMs - sinceMs > LIMIT_MS) this.#timeline.broken(`${label} took ${(untilMs - sinceMs).toFixed(0)} ms`);
      if (status >= 300 && !REFUSALS.has(status)) this.#timeline.broken(`${label} was answered with ${status}`);
    }
    return { asked, label, sinceMs, untilMs, answer };
  }

  /** Checks at the owner that a room exists whose creation was confirmed. */
  async #mustHave(room: KnownRoom): Promise<void> {
    const { owner, id } = room;
    const answer = await owner.node.api.request('GET', `/room/${id}`).catch(() => undefined);
    const nowMs = this.#timeline.nowMs;
    if (owner.wasCalm(room.sinceMs, nowMs) && answer?.status !== 200)
      this.#timeline.broken(`${owner.name} does not have room ${id}, which a client was given: ${answer?.status}`);
  }

  /** A healthy node finds every room of a healthy owner. */
  #checkFound(room: KnownRoom, { asked, label, sinceMs, untilMs, answer }: Request): void {
    const isDeleted = room.deletedMs !== undefined && !label.includes('DELETE');
    if (isDeleted || !this.#wereCalm([asked, room.owner], sinceMs, untilMs) || room.process !== room.owner.process)
      return;
    const status = answer?.status ?? 0;
    if (status >= 300 || status === 0)
      this.#timeline.broken(`${label} was answered with ${status}, and the room is on ${room.owner.name}`);
  }

  /** A healthy node lists every room of healthy owners. */
  #checkListed({ asked, label, sinceMs, untilMs, answer }: Request): void {
    if (answer?.status !== 200) return;
    const ids: string[] = answer.body.data.map(({ id }: { id: string }) => id);
    if (new Set(ids).size !== ids.length && this.#wereCalm(this.#subjects, sinceMs, untilMs))
      this.#timeline.broken(`${label} lists an id twice: ${ids.toSorted().join()}`);
    for (const room of this.rooms.values())
      if (
        room.deletedMs === undefined &&
        room.sinceMs < sinceMs - LIMIT_MS &&
        room.process === room.owner.process &&
        this.#wereCalm([asked, room.owner], sinceMs, untilMs) &&
        !ids.includes(room.id)
      )
        this.#timeline.broken(`${label} leaves out room ${room.id} of ${room.owner.name}`);
  }

  #wereCalm(subjects: readonly Subject[], sinceMs: number, untilMs: number): boolean {
    return subjects.every((subject) => subject.wasCalm(sinceMs, untilMs));
  }
}
