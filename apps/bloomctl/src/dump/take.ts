import type { AnswerOf, RequestFields, RequestKind } from '@bloom/inspection';
import type { Asker } from '../asker.js';
import { DUMP_VERSION, type DumpDocument, type DumpEntry } from './format.js';

const LISTED = 1_000;
const ROOMS = 200;
const PEERS = 200;
const ACTORS = 100;
const AT_ONCE = 4;
/** State and messages may be longer in a dump than on a screen. */
const CUT = { depth: 6, bytes: 4_096 };

/** Collects everything that can be read from a node. Requests that fail are listed in `failures`. */
export async function takeDump(asker: Asker, node: string, now: () => number): Promise<DumpDocument> {
  const entries: DumpEntry[] = [];
  const failures: DumpDocument['failures'][number][] = [];

  async function ask<K extends RequestKind>(kind: K, fields: RequestFields<K>): Promise<AnswerOf<K> | undefined> {
    try {
      const reply = await asker.ask(kind, fields, { node, timeoutMs: 10_000 });
      entries.push({ kind, fields: fields as Record<string, unknown>, node: reply.node, answer: reply.answer });
      return reply.answer;
    } catch (error) {
      failures.push({ kind, fields, reason: (error as Error).message });
      return undefined;
    }
  }

  for (const kind of ['hello', 'node', 'nodes', 'links', 'cluster', 'faults', 'load', 'ps'] as const)
    await ask(kind, {});
  await ask('placement-dry-run', {});
  await ask('logs', { limit: LISTED });
  const actors = await ask('actors', { sort: 'queue', limit: LISTED, sampleMs: 500 });
  const rooms = await ask('rooms', { scope: 'node', limit: LISTED });
  const components = await ask('components', { scope: 'node', limit: LISTED });

  let peers = 0;
  await each(rooms?.rooms.slice(0, ROOMS) ?? [], async ({ id: room }) => {
    await ask('placement-explain', { room });
    const answer = await ask('room', { room });
    await ask('media', { room });
    for (const peer of answer?.peerList ?? []) {
      if (peers >= PEERS) return;
      peers += 1;
      await ask('peer', { room, peer: peer.id, sampleMs: 250 });
    }
  });
  await each(
    components?.components ?? [],
    async ({ room, id }) => void (await ask('component', { room, component: id })),
  );
  await each(actors?.actors.slice(0, ACTORS) ?? [], async ({ path }) => {
    await ask('actor', { id: path });
    await ask('state', { id: path, ...CUT });
    await ask('mailbox', { id: path, ...CUT });
  });
  return { kind: 'dump', v: DUMP_VERSION, node, at: now(), entries, failures };
}

async function each<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await run(next);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}
