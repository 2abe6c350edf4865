import { readFile } from 'node:fs/promises';
import {
  matcher,
  part,
  type AnswerOf,
  type AskOptions,
  type OpenStream,
  type RequestFields,
  type RequestKind,
} from '@bloom/inspection';
import type { Asker } from '../asker.js';
import { EXIT, Failure } from '../exit.js';
import { type DumpDocument, type DumpEntry, unpackDump } from './format.js';

/** Fields that identify the subject of a request. Other fields only narrow the answer. */
const SUBJECTS = ['room', 'peer', 'component', 'id'] as const;

/** @throws Failure */
export async function openDump(file: string): Promise<Offline> {
  const bytes = await readFile(file).catch((error: Error) => {
    throw new Failure(EXIT.usage, `${file} cannot be read: ${error.message}`);
  });
  return new Offline(await unpackDump(bytes, file));
}

/** Answers from a dump. */
export class Offline implements Asker {
  readonly #dump: DumpDocument;

  constructor(dump: DumpDocument) {
    this.#dump = dump;
  }

  get asked(): string {
    return this.#dump.node;
  }

  /** Milliseconds since the epoch. */
  get takenAt(): number {
    return this.#dump.at;
  }

  ask<K extends RequestKind>(
    kind: K,
    fields: RequestFields<K>,
    { node }: AskOptions = {},
  ): Promise<{ node: string; answer: AnswerOf<K> }> {
    const wanted = fields as Record<string, unknown>;
    const found = this.#dump.entries.find(
      (entry) => entry.kind === kind && (node === undefined || entry.node === node) && isAbout(entry, wanted),
    );
    if (found === undefined) {
      const about = SUBJECTS.flatMap((key) => (typeof wanted[key] === 'string' ? [wanted[key]] : []));
      const what = about.length === 0 ? kind : `${kind} of ${about.join(' ')}`;
      return Promise.reject(new Failure(EXIT.unknown, `the dump of ${this.#dump.node} has no ${what}`));
    }
    return Promise.resolve({ node: found.node, answer: narrow(kind, found.answer, wanted) as AnswerOf<K> });
  }

  stream(kind: string): Promise<OpenStream> {
    return Promise.reject(new Failure(EXIT.usage, `a dump has no ${kind}: it is a snapshot`));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Lists that are dumped completely and narrowed here. */
const LISTS: ReadonlySet<string> = new Set(['actors', 'rooms', 'components', 'logs']);

function isAbout(entry: DumpEntry, wanted: Record<string, unknown>): boolean {
  if (LISTS.has(entry.kind)) return true;
  return SUBJECTS.every((key) => {
    const [asked, said] = [wanted[key], entry.fields[key]];
    if (typeof asked !== 'string') return true;
    return plain(asked) === (typeof said === 'string' ? plain(said) : undefined);
  });
}

function plain(id: string): string {
  return id.replace(/^\//, '').replace(/#\d+$/, '');
}

type Actors = AnswerOf<'actors'>;
type ActorLine = Actors['actors'][number];

const FIGURES: Record<string, (line: ActorLine) => number> = {
  queue: ({ queue }) => queue,
  in: ({ inPerS }) => inPerS ?? 0,
  out: ({ outPerS }) => outPerS ?? 0,
  busy: ({ busy }) => busy ?? 0,
  p99: ({ p99Ms }) => p99Ms ?? 0,
  restarts: ({ restarts }) => restarts,
  failed: ({ failed }) => failed,
  age: ({ ageMs }) => ageMs,
};

/** Returns the requested part of a list that was dumped completely. */
function narrow(
  kind: RequestKind,
  answer: unknown,
  { match, sort, limit, level, room, path }: Record<string, unknown>,
): unknown {
  const most = typeof limit === 'number' ? limit : 50;
  const fits = typeof match === 'string' ? matcher(match) : () => true;
  if (kind === 'actors') {
    const { actors, ...rest } = answer as Actors;
    const found = actors.filter(({ path }) => fits(path));
    const figure = FIGURES[String(sort)];
    const sorted = found.toSorted((a, b) =>
      figure === undefined ? (a.path < b.path ? -1 : 1) : figure(b) - figure(a),
    );
    return { ...rest, matched: found.length, actors: sorted.slice(0, most) };
  }
  if (kind === 'rooms') {
    const { rooms, ...rest } = answer as AnswerOf<'rooms'>;
    const found = rooms.filter(({ id }) => fits(id));
    return { ...rest, total: found.length, rooms: found.slice(0, most) };
  }
  if (kind === 'components') {
    const { components, ...rest } = answer as AnswerOf<'components'>;
    const found = components.filter((component) => typeof room !== 'string' || component.room === room);
    return { ...rest, total: found.length, components: found.slice(0, most) };
  }
  if (kind === 'state' && typeof path === 'string') {
    const { state, ...rest } = answer as AnswerOf<'state'>;
    return { ...rest, state: part(state, path) ?? null };
  }
  if (kind === 'mailbox') {
    const { messages, ...rest } = answer as AnswerOf<'mailbox'>;
    return { ...rest, messages: messages.slice(0, most) };
  }
  if (kind === 'logs') {
    const severity = ['debug', 'info', 'warning', 'error'];
    const least = severity.indexOf(String(level));
    const text = typeof match === 'string' ? match.toLowerCase() : undefined;
    const { lines } = answer as AnswerOf<'logs'>;
    const found = lines.filter(
      (line) =>
        severity.indexOf(line.level) >= least &&
        (text === undefined || `${line.event} ${JSON.stringify(line.fields)}`.toLowerCase().includes(text)),
    );
    return { lines: found.slice(-most) };
  }
  return answer;
}
