/** bloomctl's questions for an Erlang shell, read-only: `rpc:call('bloom@host', bloom, room, [<<"kitchen">>])`. */
import { Exit, type RemoteActors } from '@bloom/actors';
import { asBytes, Atom, atom, tuple, type Term } from '@bloom/etf';
import { PROTOCOL_VERSION, type Inspection, type RequestKind } from '@bloom/inspection';

const TIMEOUT_MS = 4_000;
/** Maximum length of a list in an answer. */
const LIMIT = 1_000;
/** Fields with user-chosen keys, which become binaries: Erlang never frees atoms. */
const FREE = new Set(['state', 'metadata', 'properties', 'details', 'config', 'components', 'fields', 'handles']);

type Request = { kind: RequestKind } & Record<string, unknown>;

/** Functions by name, each with its request. */
const FUNCTIONS: [name: string, arity: number, request: (...args: string[]) => Request, field?: string][] = [
  ['actors', 0, () => ({ kind: 'actors', limit: LIMIT }), 'actors'],
  ['actors', 1, (match) => ({ kind: 'actors', match, limit: LIMIT }), 'actors'],
  ['actor', 1, (id) => ({ kind: 'actor', id })],
  ['state', 1, (id) => ({ kind: 'state', id, bytes: 4_096 }), 'state'],
  ['mailbox', 1, (id) => ({ kind: 'mailbox', id }), 'types'],
  ['room', 1, (room) => ({ kind: 'room', room })],
  ['peer', 2, (room, peer) => ({ kind: 'peer', room, peer })],
  ['placement', 0, () => ({ kind: 'placement-dry-run' })],
  ['placement', 1, (room) => ({ kind: 'placement-explain', room })],
  ['links', 0, () => ({ kind: 'links' }), 'links'],
  ['path', 1, (id) => ({ kind: 'path', id }), 'hops'],
  ['logs', 0, () => ({ kind: 'logs', limit: 50 }), 'lines'],
  ['process', 0, () => ({ kind: 'ps' })],
];

export function registerInspectionFunctions({ inspector }: Inspection, remote: RemoteActors): void {
  for (const [name, arity, requestOf, field] of FUNCTIONS) {
    remote.registerFunction(['bloom', name, arity], async (...args) => {
      const request = requestOf(...args.map(textOf));
      const asking = { v: PROTOCOL_VERSION, tool: 'an Erlang node', node: null, timeoutMs: TIMEOUT_MS, request };
      const reply = await inspector.ask(asking);
      if (!reply.ok) throw new Exit(tuple(atom(reply.error.code.toLowerCase()), reply.error.message));
      const answer = reply.answer as Record<string, unknown>;

      return termOf(field === undefined ? answer : answer[field], field === undefined || !FREE.has(field));
    });
  }
}

/** Accepts names as binaries, atoms or strings. */
function textOf(term: Term): string {
  if (typeof term === 'string') return term;
  if (term instanceof Atom) return term.name;
  if (Array.isArray(term) && term.every((char) => typeof char === 'number' && char >= 0 && char <= 0x10_ff_ff)) {
    return String.fromCodePoint(...(term as number[]).slice(0, 1_024));
  }
  const bytes = asBytes(term);
  if (bytes !== undefined) return bytes.toString();

  throw new Exit(atom('badarg'));
}

/** Encodes maps with atoms for field names and binaries for user-chosen keys; null becomes `undefined`. */
function termOf(value: unknown, named: boolean): Term {
  if (value === null || value === undefined) return atom('undefined');
  if (Array.isArray(value)) return value.map((item) => termOf(item, named));
  if (typeof value !== 'object') return value as Term;

  return new Map(
    Object.entries(value).map(([name, field]): [Term, Term] => [
      named ? atom(snakeCase(name)) : name,
      termOf(field, named && !FREE.has(name)),
    ]),
  );
}

function snakeCase(name: string): string {
  return name.replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
}
