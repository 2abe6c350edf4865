import { EXIT, type ExitCode } from '../exit.js';
import { LayerFailure } from '../reach/findings.js';
import { toFailure } from '../reach/failures.js';
import { span } from '../text/units.js';
import { Person } from './person.js';
import { explain, type Path, PathFailure, type Problem, unexplained } from './problems.js';
import { connectRelay } from './relay-connection.js';
import { Seats } from './seats.js';
import { type Server, unanswered } from './server.js';
import type { Token } from './token.js';

export type TrialStep = 'http' | 'room' | 'websocket' | Path;

/** How media came back over a path. Times in ms. */
export interface MediaTimes {
  readonly remote: string;
  readonly iceMs: number;
  readonly dtlsMs: number;
  /** From the first packet sent to the first that came back; null with a peer's token, if nobody else sends. */
  readonly mediaMs: number | null;
  /** Median time from the sender through the server to the receiver. */
  readonly delayMs: number | null;
  readonly sent: number;
  /** Packets that came back; with a peer's token, those that the server confirmed. */
  readonly received: number;
}

export interface StepFailure {
  readonly exit: ExitCode;
  readonly problem: Problem | null;
  readonly message: string;
  readonly fix: string;
}

export interface StepResult {
  readonly step: TrialStep;
  readonly ok: boolean;
  readonly text: string;
  readonly ms: number;
  readonly media?: MediaTimes;
  readonly failure?: StepFailure;
}

export interface TrialOptions {
  readonly server: Server;
  readonly token: Token;
  /** Limit of each answer, ms. */
  readonly timeoutMs: number;
  /** Limit for media to come back, for each path, ms. */
  readonly withinMs: number;
  /** Called after each step. */
  onStep?(result: StepResult): void;
}

type Passed = Pick<StepResult, 'text' | 'media'>;

const RELAYS = ['relay-udp', 'relay-tcp', 'relay-tls'] as const satisfies Path[];
/** Number of packets that have to come back. */
const ENOUGH = 30;
/** Time from the offer until the server has reported: it considers media failed after 10 s. */
const SERVERS_VIEW_MS = 12_000;
const POLL_MS = 100;

/** Tests a deployment from outside, step by step. Adds a room where allowed, and removes it in `close`. */
export class Trial {
  readonly steps: StepResult[] = [];
  readonly #options: TrialOptions;
  readonly #seats: Seats;
  /** The sender and the receiver; the sender alone with a peer's token. */
  #people: Person[] = [];
  #peerIds: (string | undefined)[] = [];
  #closed = false;

  constructor(options: TrialOptions) {
    this.#options = options;
    this.#seats = new Seats(options.server, options.token);
  }

  /** Id of the room; null before there is one. */
  get room(): string | null {
    return this.#seats.roomId ?? null;
  }

  /** Runs all steps, up to the first that fails before the paths of media. Never rejects. */
  async run(): Promise<void> {
    if (!(await this.#step('http', () => this.#http()))) return;
    if (!(await this.#step('room', async () => ({ text: await this.#seats.open() })))) return;
    if (!(await this.#step('websocket', () => this.#join('udp')))) return;
    await this.#step('udp', () => this.#media('udp'));
    // No other path would do what the token forbids.
    if (this.steps.at(-1)?.failure?.exit === EXIT.rights) return;
    const first = this.#people[0];
    for (const relay of RELAYS.filter((one) => first?.relayFor(one) !== undefined)) {
      await this.#step(relay, async () => {
        const where = first?.announcedFor(relay) ?? '';
        const direct = this.steps.find(({ step }) => step === 'udp')?.failure;
        // The relay has the address of the direct path, so there is nothing more to learn.
        if (relay === 'relay-udp' && direct !== undefined)
          throw direct.problem === null ? unexplained(relay, where) : explain(direct.problem, relay, where);
        await this.#leave();
        await this.#join(relay);
        return await this.#media(relay, first);
      });
    }
  }

  /** Exit code: that of the step that ended the trial; 1 if media passes over only some of the announced paths. */
  get exit(): ExitCode {
    const failures = this.steps.flatMap(({ failure }) => failure ?? []);
    const [first] = failures;
    if (first === undefined) return EXIT.ok;
    if (first.exit !== EXIT.no) return first.exit;

    return this.steps.some(({ media }) => media !== undefined) ? EXIT.no : EXIT.unreachable;
  }

  /** Leaves the room, and removes it if it was created here. Idempotent; never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#leave();
    await this.#seats.close();
  }

  /** Returns false if the step failed. */
  async #step(step: TrialStep, run: () => Promise<Passed>): Promise<boolean> {
    const startedAt = performance.now();
    const finish = (result: Omit<StepResult, 'step' | 'ms'>): boolean => {
      const ms = Math.round((performance.now() - startedAt) * 10) / 10;
      if (this.#closed) return false;
      this.steps.push({ step, ms, ...result });
      this.#options.onStep?.({ step, ms, ...result });
      return result.ok;
    };
    try {
      return finish({ ok: true, ...(await run()) });
    } catch (error) {
      const { exit, message, fix, text } = error instanceof LayerFailure ? error : surprise(error);
      const problem = (error instanceof PathFailure ? error.problem : undefined) ?? null;
      return finish({ ok: false, text, failure: { exit, problem, message, fix } });
    }
  }

  async #http(): Promise<Passed> {
    const { server } = this.#options;
    const { status, json } = await server.call('GET', '/health/live');
    const { host } = server.url;
    if (status !== 200 || json['status'] !== 'UP') {
      throw new LayerFailure({
        exit: EXIT.unreachable,
        text: `${host}: answers ${status}`,
        message: `What answers at ${host} is not a Bloom server: GET /health/live gives ${status}.`,
        fix: 'Check the address, and that the proxy in front passes all paths.',
      });
    }

    return { text: `${server.url.protocol.slice(0, -1)}, ${host} answers` };
  }

  /** Seats a sender and a receiver, whose media will take this path. */
  async #join(path: Path): Promise<Passed> {
    const { timeoutMs, server } = this.#options;
    const seats = await this.#seats.take();
    this.#peerIds = seats.map(({ peerId }) => peerId);
    this.#people = seats.map(({ token, url }, i) => new Person({ url, token, path, publishes: i === 0, timeoutMs }));
    const where = new URL(seats[0]?.url ?? server.url).host;
    try {
      for (const { authenticated } of this.#people) {
        if (!(await inTime(authenticated, timeoutMs))) throw new DOMException('', 'TimeoutError');
      }
    } catch (error) {
      throw this.#websocketFailure(error, where);
    }

    return { text: `${where} accepts the token` };
  }

  #websocketFailure(error: unknown, where: string): LayerFailure {
    const { server, timeoutMs, token } = this.#options;
    const message = error instanceof Error ? error.message : String(error);
    const closed = /closed: \d+ (.+)$/.exec(message)?.[1];
    if (closed !== undefined) {
      return new LayerFailure({
        exit: EXIT.rights,
        text: `${where}: ${closed}`,
        message: `The server refuses the token${token.kind === 'peer' ? ` from ${token.source}` : ''}: ${closed}.`,
        fix: 'Ask for a new one; nodes of one cluster need the same JF_SECRET_KEY_BASE.',
      });
    }
    const status = /Unexpected server response: (\d+)/.exec(message)?.[1];
    if (status !== undefined) {
      return new LayerFailure({
        exit: EXIT.unreachable,
        text: `${where}: ${status} instead of a websocket`,
        message: `${where} answers ${status} where a websocket should open.`,
        fix: 'The proxy in front has to pass upgrades: the headers Connection and Upgrade.',
      });
    }
    const failure = unanswered(error, new URL(`${server.url.protocol}//${where}`), timeoutMs);
    if (where === server.url.host) return failure;

    return new LayerFailure({
      exit: failure.exit,
      text: failure.text,
      message: `The server sends clients to ${where}, where no websocket opens. ${failure.message}`,
      fix: 'Set JF_HOST to the name and port that clients reach.',
    });
  }

  /** Sends media over a path until enough of it has come back. `first` knows what the server announces. */
  async #media(path: Path, first?: Person): Promise<Passed> {
    const { withinMs, timeoutMs } = this.#options;
    const [sender, receiver] = this.#people as [Person, Person?];
    const endsAt = performance.now() + withinMs;
    const left = (): number => Math.max(1, endsAt - performance.now());
    const relay = first?.relayFor(path);
    const beyond = relay === undefined ? '' : `${relay.serverAddr}:${relay.serverPort}`;
    const connectMs =
      relay !== undefined && (path === 'relay-tcp' || path === 'relay-tls')
        ? await connectRelay({ host: relay.serverAddr, port: relay.serverPort }, path, timeoutMs)
        : undefined;
    for (const [i, person] of this.#people.entries()) {
      if (await inTime(person.connected, left())) {
        // A track that the server refuses is not reported to anyone.
        if (person === sender && !sender.mayPublish) throw refusedTrack();
        continue;
      }
      throw await this.#explain(person, path, { where: person.announcedFor(path) ?? beyond, peerId: this.#peerIds[i] });
    }
    const where = relay === undefined ? (sender.remote ?? beyond) : beyond;
    if (path === 'relay-udp' && sender.relayTransport !== 'udp') throw explain('NO_CHECKS', path, where);
    const startedAt = performance.now();
    sender.startMedia();
    const arrived = (): number =>
      receiver === undefined ? Math.max(sender.received, sender.confirmed) : receiver.received;
    while (arrived() < ENOUGH && left() > 1) await pause(POLL_MS / 4);
    sender.stopMedia();
    if (arrived() < ENOUGH) throw explain('NO_MEDIA', path, where);
    const { ice = 0, offered = 0, connected = 0 } = sender.at;
    const came = receiver?.firstMediaAt ?? sender.firstMediaAt;
    const delays = (receiver ?? sender).delays.toSorted((a, b) => a - b);
    const media: MediaTimes = {
      remote: where,
      iceMs: tenth(ice - offered),
      dtlsMs: tenth(connected - ice),
      mediaMs: came === undefined ? null : tenth(came - startedAt),
      delayMs: receiver === undefined ? null : tenth(delays[Math.floor(delays.length / 2)] ?? 0),
      sent: sender.publisher?.sent ?? 0,
      received: arrived(),
    };

    return { text: textOf(media, connectMs), media };
  }

  /** Returns why a person's media does not connect, as seen by this side or otherwise by the server. */
  async #explain(person: Person, path: Path, { where, peerId }: { where: string; peerId: string | undefined }) {
    if (person.at.offered === undefined) {
      return new PathFailure(undefined, {
        exit: EXIT.timeout,
        text: 'the server asks for no offer',
        message: 'The websocket is open, but the server does not ask for an offer.',
        fix: 'Look at the log of the node: its media workers may be busy or gone.',
      });
    }
    if (person.hasPath) return explain('DTLS_FAILED', path, where);
    const isLoopback = /^(?:127\.|\[::1\])/.test(where);
    if (isLoopback && !/^(?:localhost|127\.|\[::1\])/.test(this.#options.server.url.hostname)) {
      return explain('NO_CANDIDATES', path, where);
    }
    if (path !== 'udp' && !person.isAllocated) return explain('RELAY_REFUSED', path, where);
    const problem = await this.#serversView(peerId, person.offeredAt + SERVERS_VIEW_MS);

    return problem === undefined ? unexplained(path, where) : explain(problem, path, where);
  }

  async #serversView(peerId: string | undefined, until: number): Promise<Problem | undefined> {
    if (!this.#seats.mayAsk) return undefined;
    // It is asked at least once, however late that is.
    for (;;) {
      const media = await this.#seats.mediaOf(peerId).catch(() => undefined);
      if (media?.problem !== undefined) return media.problem as Problem;
      if (performance.now() >= until || this.#closed) return undefined;
      await pause(POLL_MS);
    }
  }

  async #leave(): Promise<void> {
    const people = this.#people;
    this.#people = [];
    await Promise.all(people.map((person) => person.close()));
  }
}

function refusedTrack(): LayerFailure {
  return new LayerFailure({
    exit: EXIT.rights,
    text: 'the token allows no video',
    message: 'The path works, but the server takes no video from this participant.',
    fix: 'Try with an invitation that permits its guests to publish, in a room that takes VP8.',
  });
}

/** `203.0.113.7:50000, ICE 12 ms, DTLS 30 ms, media back after 9.1 ms, 30 packets` */
function textOf({ remote, iceMs, dtlsMs, mediaMs, received }: MediaTimes, connectMs: number | undefined): string {
  const connect = connectMs === undefined ? '' : `, connected in ${span(connectMs)}`;
  const back = mediaMs === null ? 'the server confirms' : `media back after ${span(mediaMs)}`;

  return `${remote}${connect}, ICE ${span(iceMs)}, DTLS ${span(dtlsMs)}, ${back}, ${received} packets`;
}

function surprise(error: unknown): LayerFailure {
  const { exit, message, advice = '' } = toFailure(error);
  return new LayerFailure({ exit, text: message, message: `${message}.`, fix: advice });
}

function tenth(ms: number): number {
  return Math.round(ms * 10) / 10;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Resolves with false if the promise has not settled in time. Rejects if it does. */
async function inTime(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), ms)));
  try {
    return await Promise.race([promise.then(() => true as const), late]);
  } finally {
    clearTimeout(timer);
  }
}
