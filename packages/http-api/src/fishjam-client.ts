/**
 * What the server SDKs of later Fishjam releases expect beyond the API of Jellyfish 0.5. They identify themselves in a
 * header; other clients see none of this.
 */
import type { IncomingMessage } from 'node:http';
import { HttpError } from './errors.js';
import type { OperationId } from './routes.js';
import { shown } from './schemas/common.js';

type Json = Readonly<Record<string, unknown>>;

export function isFishjamClient({ headers }: IncomingMessage): boolean {
  return headers['x-fishjam-api-client'] !== undefined;
}

/**
 * Removes the second slash of `//room`: the JavaScript SDK appends paths to an address that ends in a slash. Must run
 * before anything routes the path.
 */
export function mendFishjamPath(request: IncomingMessage): void {
  if (isFishjamClient(request) && request.url?.startsWith('//') === true) request.url = request.url.slice(1);
}

/** Values of fields unknown here that require nothing this server lacks; omitting the fields has the same effect. */
const SUPPORTED: Partial<Record<OperationId, Readonly<Record<string, readonly unknown[]>>>> = {
  create_room: {
    roomType: ['conference', 'full_feature', null],
    public: [false, null],
    batchWebhookNotifications: [false, null],
  },
};
const PEER_OPTIONS = { subscribeMode: ['auto', null] };
/** Every field that only these SDKs know. */
export const FISHJAM_FIELDS: ReadonlySet<string> = new Set(
  [PEER_OPTIONS, ...Object.values(SUPPORTED)].flatMap((fields) => Object.keys(fields)),
);

/** @throws HttpError 400 for anything this server would ignore */
export function refuseUnsupported(id: OperationId, body: Json): void {
  refuse(body, SUPPORTED[id] ?? {});
  // The viewers of this server are no viewers of livestreams: the answer has no token where these SDKs look for it.
  if (id === 'create_viewer') throw new HttpError(400, 'This server has no livestreams');
  if (id === 'add_peer') refuse(objectOf(body['options']), PEER_OPTIONS);
}

function refuse(given: Json, supported: Readonly<Record<string, readonly unknown[]>>): void {
  for (const [field, values] of Object.entries(supported)) {
    const value = given[field];
    if (value === undefined || values.includes(value)) continue;
    throw new HttpError(400, `This server supports only ${field} ${shown(values[0])}, got: ${shown(value)}`);
  }
}

/** Returns a JSON answer as these SDKs parse it. */
export function fishjamView(id: OperationId, answer: unknown): unknown {
  const { data } = answer as { data: unknown };
  switch (id) {
    case 'get_all_rooms':
      return { ...objectOf(answer), data: (data as Json[]).map(roomView) };
    case 'get_room':
    case 'update_room':
      return { data: roomView(data as Json) };
    case 'create_room':
      return { data: { ...objectOf(data), room: roomView((data as { room: Json }).room) } };
    case 'add_peer':
      return { data: { ...objectOf(data), peer: peerView((data as { peer: Json }).peer) } };
    case 'update_peer':
      return { data: peerView(data as Json) };
    default:
      return answer;
  }
}

function roomView(room: Json): Json {
  const { videoCodec, ...config } = objectOf(room['config']);

  return {
    ...room,
    config: videoCodec === null ? config : { ...config, videoCodec },
    peers: (room['peers'] as Json[]).map(peerView),
  };
}

function peerView(peer: Json): Json {
  return { ...peer, subscribeMode: 'auto', subscriptions: { peers: [], tracks: [] } };
}

function objectOf(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}
