import type { ComponentView, RoomView, TrackView } from '@bloom/rooms';
import type { MediaEndpoint } from '@bloom/sfu';
import type { Asker, Inspector, MemberAnswer, Unreachable } from '../inspector/inspector.js';
import type { Redactor } from '../inspector/redact.js';
import { InspectionError } from '../errors.js';
import type { AnswerOf } from '../protocol/types.js';
import type { InspectionSources } from '../sources.js';

const MEMBER_TIMEOUT_MS = 1_000;
/** Limits for properties and metadata, which come from users. */
const CUT = { depth: 6, bytes: 4_096 };
/** Maximum number of characters in a peer's name. */
const MAX_NAME = 64;

export type RoomLine = AnswerOf<'rooms'>['rooms'][number];
export type ComponentLine = AnswerOf<'components'>['components'][number];

/** What the answers about rooms and their media work with. */
export interface MediaAnswerContext {
  sources: InspectionSources;
  redactor: Redactor;
  inspector: () => Inspector;
}

/** Returns a value that users chose without secrets, and cut to a bound. */
export function shown({ redactor }: MediaAnswerContext, value: unknown): unknown {
  return redactor.show(value, CUT).value;
}

/** Returns a room of this node. @throws InspectionError UNKNOWN_ROOM */
export function roomNamed({ sources }: Pick<MediaAnswerContext, 'sources'>, roomId: string): RoomView {
  const view = sources.rooms.views().find(({ id }) => id === roomId);
  if (view === undefined) throw noRoom(sources.self, roomId);

  return view;
}

export function noRoom(self: string, roomId: string): InspectionError {
  return new InspectionError('UNKNOWN_ROOM', `${self} has no room ${roomId}`);
}

export function roomLine({ sources }: MediaAnswerContext, { id, peers, components }: RoomView): RoomLine {
  const kinds: Record<string, number> = {};
  for (const { type } of components) kinds[type] = (kinds[type] ?? 0) + 1;

  return {
    id,
    node: sources.self,
    peers: peers.length,
    connected: peers.filter(({ status }) => status === 'connected').length,
    components: kinds,
    tracks: [...peers, ...components].reduce((sum, { tracks }) => sum + tracks.length, 0),
  };
}

export function componentLine(context: MediaAnswerContext, roomId: string, component: ComponentView): ComponentLine {
  const { id, type, properties, tracks } = component;

  return {
    node: context.sources.self,
    room: roomId,
    id,
    type,
    properties: shown(context, properties),
    tracks: tracks.map((track) => trackLine(context, track)),
  };
}

export function trackLine(
  context: MediaAnswerContext,
  { id, type, metadata, muted }: TrackView,
): ComponentLine['tracks'][number] {
  return { id, kind: type, metadata: shown(context, metadata), ...(muted === undefined ? {} : { muted }) };
}

/** Returns the name of a peer; null without one. The backend's metadata take precedence over the client's. */
export function nameOf({ redactor }: MediaAnswerContext, metadata: unknown): string | null {
  const whole = fieldsOf(metadata);
  for (const { name, displayName } of [fieldsOf(whole['server']), fieldsOf(whole['peer']), whole]) {
    for (const candidate of [name, displayName]) {
      if (typeof candidate === 'string' && candidate !== '') return redactor.text(candidate).slice(0, MAX_NAME);
    }
  }

  return null;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

export function addressOf({ address, port }: MediaEndpoint): string {
  return `${address}:${port}`;
}

/** Asks the other members for their lines, unless the tool asked about this node alone. */
export async function linesElsewhere<K extends 'rooms' | 'components'>(
  { inspector }: MediaAnswerContext,
  { kind, fields }: { kind: K; fields: { scope: 'node' | 'cluster' } },
  asker: Asker,
): Promise<{ answers: MemberAnswer<K>[]; unreachable: Unreachable[] }> {
  if (fields.scope === 'node' || asker.alone) return { answers: [], unreachable: [] };
  const timeoutMs = Math.min(MEMBER_TIMEOUT_MS, asker.timeoutMs);

  return await inspector().askMembers(kind, { ...fields, scope: 'node' }, { ...asker, timeoutMs });
}
