/** Schemas of what `--json` and `--jsonl` print, by `kind`. Loaded only for `bloomctl schema` and tests. */
import { loadSchemas, type RequestKind } from '@bloom/inspection';
import { z } from 'zod';
import { DOCUMENT_VERSION } from './output.js';
import { PEOPLE_DOCUMENTS } from './people/documents.js';

const unreachable = z.array(z.object({ name: z.string(), reason: z.string() }));
const asked = z.string();
const exit = z.number().int();

function document<S extends z.ZodRawShape>(kind: string, shape: S) {
  return z.object({ kind: z.literal(kind), v: z.literal(DOCUMENT_VERSION), ...shape });
}

/** Requests used by other commands, and requests whose document has another name. */
const NOT_PRINTED: ReadonlySet<string> = new Set([
  'hello',
  'node',
  'links',
  'hops',
  'placement-explain',
  'placement-dry-run',
] satisfies RequestKind[]);
/** Answers that already name the nodes they come from. */
const NAMES_ITS_NODES: ReadonlySet<string> = new Set([
  'nodes',
  'cluster',
  'link-cut',
  'room-move',
  'path',
  'rooms',
  'room',
  'media',
  'peer',
  'components',
  'component',
] satisfies RequestKind[]);

/** Returns the schemas by kind. A request has the form `{ asked, node, ...answer }` unless another one is listed. */
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
    'socket',
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
  const limit = z.object({
    name: z.enum(['loss', 'delay']),
    cause: z.enum(['worker', 'memory', 'bandwidth', 'generator', 'unknown']),
    message: z.string(),
  });
  const saved = { asked, file: z.string(), bytes: z.number().int() };

  const kinds: Record<string, z.ZodRawShape> = {
    doctor: {
      ok: z.boolean(),
      target: z.string(),
      node: z.string().nullable(),
      layers: z.array(z.object({ layer, ok: z.boolean(), text: z.string(), ms: z.number() })),
      failed: z.object({ layer, exit, message: z.string(), fix: z.string() }).nullable(),
    },
    try: {
      ok: z.boolean(),
      url: z.string(),
      as: z.enum(['api', 'peer', 'invitation']),
      room: z.string().nullable(),
      steps: z.array(
        z.object({
          step: z.enum(['http', 'room', 'websocket', 'udp', 'relay-udp', 'relay-tcp', 'relay-tls']),
          ok: z.boolean(),
          text: z.string(),
          ms: z.number(),
          media: z
            .object({
              remote: z.string(),
              iceMs: z.number(),
              dtlsMs: z.number(),
              mediaMs: z.number().nullable(),
              delayMs: z.number().nullable(),
              sent: z.number().int(),
              received: z.number().int(),
            })
            .optional(),
          failure: z
            .object({
              exit,
              problem: z
                .enum(['NO_CHECKS', 'ONE_WAY', 'DTLS_FAILED', 'NO_MEDIA', 'NO_CANDIDATES', 'RELAY_REFUSED'])
                .nullable(),
              message: z.string(),
              fix: z.string(),
            })
            .optional(),
        }),
      ),
    },
    loadtest: {
      ok: z.boolean(),
      url: z.string(),
      rooms: z.number().int(),
      people: z.number().int(),
      publishers: z.number().int(),
      minutes: z.number(),
      kbps: z.number().int(),
      forwardedTracks: z.number().int(),
      steps: z.array(
        z.object({
          people: z.number().int(),
          forwardedTracks: z.number().int(),
          wanted: z.number().int(),
          arrived: z.number().int(),
          invalid: z.number().int(),
          p50Ms: z.number().nullable(),
          p99Ms: z.number().nullable(),
          mbps: z.number(),
          packetsPerS: z.number(),
          ownBusy: z.number(),
          server: z.object({
            cpu: z.number().nullable(),
            loopP99Ms: z.number().nullable(),
            workerBusy: z.number().nullable(),
            memoryBytes: z.number().nullable(),
            gcShare: z.number().nullable(),
          }),
          limit: limit.nullable(),
        }),
      ),
      limit: limit.nullable(),
    },
    names: {
      host: z.string(),
      port: z.number().int(),
      nodes: z.array(z.object({ name: z.string(), port: z.number().int() })),
    },
    faults: several('faults'),
    actors: several('actors'),
    ps: several('ps'),
    // `kind` is the kind of the document, so that of an actor has another name.
    actor: { asked, node, behaviour: z.string(), ...answer.actor.answer.omit({ kind: true }).shape },
    state: { asked, node, behaviour: z.string(), ...answer.state.answer.omit({ kind: true }).shape },
    load: { ...answer.load.answer.shape },
    placement: { ...answer['placement-explain'].answer.shape },
    logs: { asked, unreachable, lines: z.array(logLine) },
    profile: saved,
    pcap: saved,
    check: {
      check: z.enum(['cluster', 'queue', 'server', 'room', 'recordings']),
      ok: z.boolean(),
      message: z.string(),
      unreachable: z.array(z.string()),
      asked: asked.optional(),
      expected: z.number().int().optional(),
      up: z.number().int().optional(),
      verdict: z.enum(['whole', 'partial', 'split']).optional(),
      max: z.number().int().optional(),
      longest: z.object({ node, actor: z.string(), queue: z.number().int() }).nullable().optional(),
      url: z.string().optional(),
      version: z.string().optional(),
      room: z.string().optional(),
      connected: z.number().int().optional(),
      failed: z.array(z.object({ room: z.string(), part: z.string() })).optional(),
    },
    dumped: {
      node,
      file: z.string(),
      bytes: z.number().int(),
      answers: z.number().int(),
      failures: z.array(z.object({ kind: z.string(), fields: z.record(z.string(), z.unknown()), reason: z.string() })),
    },
    ...PEOPLE_DOCUMENTS,
    error: { exit, message: z.string() },
    schemas: { schemas: z.record(z.string(), z.record(z.string(), z.unknown())) },
  };
  for (const [kind, spec] of Object.entries(answer)) {
    if (NOT_PRINTED.has(kind) || kind in kinds) continue;
    kinds[kind] = { asked, ...(NAMES_ITS_NODES.has(kind) ? {} : { node }), ...(spec.answer as z.ZodObject).shape };
  }
  for (const [kind, item] of Object.entries(items)) {
    kinds[kind] = item.shape;
    kinds[`${kind}-stream`] = { asked, items: z.array(item), ended };
  }
  return Object.fromEntries(Object.entries(kinds).map(([kind, shape]) => [kind, document(kind, shape)]));
}

/** Returns strict JSON schemas for validators. */
export async function jsonSchemas(): Promise<Record<string, object>> {
  const documents = await loadDocuments();
  return Object.fromEntries(
    Object.entries(documents).map(([kind, schema]) => [kind, z.toJSONSchema(schema, { io: 'output' })]),
  );
}
