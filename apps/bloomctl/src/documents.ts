/** Schemas of what `--json` and `--jsonl` print, by `kind`. Loaded for `bloomctl schema` and tests only. */
import { loadSchemas } from '@bloom/inspection';
import { z } from 'zod';
import { DOCUMENT_VERSION } from './output.js';

const unreachable = z.array(z.object({ name: z.string(), reason: z.string() }));
const asked = z.string();
const exit = z.number().int();

function document<S extends z.ZodRawShape>(kind: string, shape: S) {
  return z.object({ kind: z.literal(kind), v: z.literal(DOCUMENT_VERSION), ...shape });
}

/** One document of each kind, as a strict JSON schema would have it. */
export async function loadDocuments(): Promise<Record<string, z.ZodObject>> {
  const { requests: answer, streams } = await loadSchemas();
  const node = z.string();
  const several = (kind: 'actors' | 'ps' | 'faults') => ({
    asked,
    unreachable,
    nodes: z.array(z.object({ node, ...answer[kind].answer.shape })),
  });
  const ended = z.array(
    z.object({
      node,
      reason: z.enum(['limit', 'time', 'complete', 'stopped', 'slow', 'lost', 'failed']),
      message: z.string().nullable(),
      sent: z.number().int(),
      dropped: z.number().int(),
      costMs: z.number().nullable(),
    }),
  );
  const logLine = z.object({
    /** ISO 8601, UTC. */
    t: z.string(),
    node,
    level: z.enum(['debug', 'info', 'warning', 'error']),
    event: z.string(),
    fields: z.record(z.string(), z.unknown()),
  });
  const items = {
    event: z.object(streams['cluster-events'].item.shape),
    trace: z.object(streams.trace.item.shape),
    top: z.object(streams.top.item.shape),
    log: logLine,
  };
  const layer = z.enum([
    'settings',
    'resolve',
    'port mapper',
    'name',
    'tcp',
    'handshake',
    'cookie',
    'service',
    'request',
  ]);
  const saved = { asked, file: z.string(), bytes: z.number().int() };

  const kinds: Record<string, z.ZodRawShape> = {
    doctor: {
      ok: z.boolean(),
      target: z.string(),
      node: z.string().nullable(),
      layers: z.array(z.object({ layer, ok: z.boolean(), text: z.string(), ms: z.number() })),
      failed: z.object({ layer, exit, message: z.string(), fix: z.string() }).nullable(),
    },
    names: {
      host: z.string(),
      port: z.number().int(),
      nodes: z.array(z.object({ name: z.string(), port: z.number().int() })),
    },
    nodes: { asked, ...answer.nodes.answer.shape },
    cluster: { asked, ...answer.cluster.answer.shape },
    drain: { asked, node, ...answer.drain.answer.shape },
    undrain: { asked, node, ...answer.undrain.answer.shape },
    'link-cut': { asked, ...answer['link-cut'].answer.shape },
    faults: several('faults'),
    actors: several('actors'),
    // `kind` says what the document is; what kind an actor is has another name there.
    actor: { asked, node, behaviour: z.string(), ...answer.actor.answer.omit({ kind: true }).shape },
    state: { asked, node, behaviour: z.string(), ...answer.state.answer.omit({ kind: true }).shape },
    mailbox: { asked, node, ...answer.mailbox.answer.shape },
    path: { asked, ...answer.path.answer.shape },
    kill: { asked, node, ...answer.kill.answer.shape },
    suspend: { asked, node, ...answer.suspend.answer.shape },
    resume: { asked, node, ...answer.resume.answer.shape },
    ps: several('ps'),
    rooms: { asked, ...answer.rooms.answer.shape },
    room: { asked, ...answer.room.answer.shape },
    peer: { asked, ...answer.peer.answer.shape },
    components: { asked, ...answer.components.answer.shape },
    component: { asked, ...answer.component.answer.shape },
    load: { ...answer.load.answer.shape },
    placement: { ...answer['placement-explain'].answer.shape },
    logs: { asked, unreachable, lines: z.array(logLine) },
    'log-level': { asked, node, ...answer['log-level'].answer.shape },
    profile: saved,
    pcap: saved,
    check: {
      check: z.enum(['cluster', 'queue']),
      ok: z.boolean(),
      message: z.string(),
      unreachable: z.array(z.string()),
      asked: asked.optional(),
      expected: z.number().int().optional(),
      up: z.number().int().optional(),
      verdict: z.enum(['whole', 'partial', 'split']).optional(),
      max: z.number().int().optional(),
      longest: z.object({ node, actor: z.string(), queue: z.number().int() }).nullable().optional(),
    },
    dumped: {
      node,
      file: z.string(),
      bytes: z.number().int(),
      answers: z.number().int(),
      failures: z.array(z.object({ kind: z.string(), fields: z.record(z.string(), z.unknown()), reason: z.string() })),
    },
    error: { exit, message: z.string() },
    schemas: { schemas: z.record(z.string(), z.record(z.string(), z.unknown())) },
  };
  for (const [kind, item] of Object.entries(items)) {
    kinds[kind] = item.shape;
    kinds[`${kind}-stream`] = { asked, items: z.array(item), ended };
  }
  return Object.fromEntries(Object.entries(kinds).map(([kind, shape]) => [kind, document(kind, shape)]));
}

/** As a JSON schema that allows nothing but what is documented, such as a validator wants. */
export async function jsonSchemas(): Promise<Record<string, object>> {
  const documents = await loadDocuments();
  return Object.fromEntries(
    Object.entries(documents).map(([kind, schema]) => [kind, z.toJSONSchema(schema, { io: 'output' })]),
  );
}
