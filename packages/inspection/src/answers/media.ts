import type { PeerView, RoomView } from '@bloom/rooms';
import { explainChoice, type RoomMediaStats } from '@bloom/sfu';
import { printableUrl } from '@bloom/log';
import type { Answers, Asker } from '../inspector/inspector.js';
import { matcher } from '../inspector/pattern.js';
import { InspectionError } from '../errors.js';
import type { AnswerOf, ParsedRequest } from '../protocol/types.js';
import {
  addressOf,
  componentLine,
  linesElsewhere,
  nameOf,
  roomLine,
  roomNamed,
  shown,
  trackLine,
  type MediaAnswerContext,
} from './media-lines.js';
import { statsOf } from './media-samples.js';
import { peerAnswer } from './peer.js';
import { transportOf } from './peer-rates.js';

/** Answers about the rooms of the cluster, their peers, components and media. */
export function mediaAnswers(context: MediaAnswerContext): Answers {
  return {
    rooms: (fields, asker) => roomsAnswer(context, fields, asker),
    room: ({ room }) => roomAnswer(context, roomNamed(context, room)),
    media: ({ room }) => mediaAnswer(context, roomNamed(context, room)),
    peer: (fields, asker) => peerAnswer(context, fields, asker),
    components: (fields, asker) => componentsAnswer(context, fields, asker),
    component: (fields) => componentAnswer(context, fields),
  };
}

async function roomsAnswer(
  context: MediaAnswerContext,
  fields: ParsedRequest<'rooms'>,
  asker: Asker,
): Promise<AnswerOf<'rooms'>> {
  const { match, limit } = fields;
  const wanted = match === null ? () => true : matcher(match);
  const own = context.sources.rooms.views().filter(({ id }) => wanted(id));
  const others = await linesElsewhere(context, { kind: 'rooms', fields }, asker);
  const lines = [
    ...own.slice(0, limit).map((view) => roomLine(context, view)),
    ...others.answers.flatMap(({ answer }) => answer.rooms),
  ];

  return {
    total: own.length + others.answers.reduce((sum, { answer }) => sum + answer.total, 0),
    rooms: lines.toSorted((a, b) => (a.id < b.id ? -1 : 1)).slice(0, limit),
    unreachable: others.unreachable,
  };
}

async function roomAnswer(context: MediaAnswerContext, view: RoomView): Promise<AnswerOf<'room'>> {
  const media = context.sources.rooms.media(view.id);
  const stats = await statsOf(media);
  const { webhookUrl, ...config } = view.config;
  const first = view.peers.map(({ id }) => media?.endpointOf(id)).find((endpoint) => endpoint !== undefined);

  return {
    ...roomLine(context, view),
    config: shown(context, { ...config, webhookUrl: webhookUrl === null ? null : printableUrl(webhookUrl) }),
    endpoint: first === undefined ? null : { address: first.address, port: first.port, tcpPort: first.tcpPort ?? null },
    peerList: view.peers.map((peer) => peerLine(context, { roomId: view.id, peer, stats })),
    componentList: view.components.map((component) => componentLine(context, view.id, component)),
  };
}

function peerLine(
  context: MediaAnswerContext,
  { roomId, peer, stats }: { roomId: string; peer: PeerView; stats: RoomMediaStats | undefined },
): AnswerOf<'room'>['peerList'][number] {
  const { id, status, tracks, metadata } = peer;
  const transport = transportOf(stats, id);
  const endpoint = context.sources.rooms.media(roomId)?.endpointOf(id);
  const roundTrips = transport?.outbound.flatMap(({ roundTripMs }) => roundTripMs ?? []) ?? [];

  return {
    id,
    name: nameOf(context, metadata),
    client: context.sources.rooms.clientOf(roomId, id) ?? null,
    status,
    ice: transport?.iceState ?? null,
    dtls: transport?.dtlsState ?? null,
    local: endpoint === undefined ? null : addressOf(endpoint),
    worker: endpoint?.worker ?? null,
    tracks: tracks.map((track) => trackLine(context, track)),
    bytesReceived: transport?.bytesReceived ?? null,
    bytesSent: transport?.bytesSent ?? null,
    estimationBps: transport?.estimationBps ?? null,
    roundTripMs: roundTrips.length === 0 ? null : Math.max(...roundTrips),
  };
}

/** Says which media worker serves each peer of a room, and why. */
async function mediaAnswer(context: MediaAnswerContext, view: RoomView): Promise<AnswerOf<'media'>> {
  const { engine, rooms, self } = context.sources;
  const media = rooms.media(view.id);
  const { packetsCrossed } = await engine.stats();

  return {
    room: view.id,
    node: self,
    workers: engine.workerSamples().map(({ worker, busy, transports, rooms: count }) => ({
      worker,
      busy,
      transports,
      rooms: count,
    })),
    packetsCrossed,
    peerList: view.peers.flatMap(({ id, metadata }) => {
      const endpoint = media?.endpointOf(id);
      const choice = media?.choiceOf(id);
      if (endpoint === undefined || choice === undefined) return [];
      const { worker } = choice;
      return [{ id, name: nameOf(context, metadata), local: addressOf(endpoint), worker, why: explainChoice(choice) }];
    }),
  };
}

async function componentsAnswer(
  context: MediaAnswerContext,
  fields: ParsedRequest<'components'>,
  asker: Asker,
): Promise<AnswerOf<'components'>> {
  const { room, limit } = fields;
  const own = context.sources.rooms
    .views()
    .filter(({ id }) => room === null || id === room)
    .flatMap(({ id, components }) => components.map((component) => componentLine(context, id, component)));
  const others = await linesElsewhere(context, { kind: 'components', fields }, asker);
  const lines = [...own, ...others.answers.flatMap(({ answer }) => answer.components)];

  return {
    total: own.length + others.answers.reduce((sum, { answer }) => sum + answer.total, 0),
    components: lines.slice(0, limit),
    unreachable: others.unreachable,
  };
}

/** @throws InspectionError UNKNOWN_ROOM, UNKNOWN_COMPONENT */
function componentAnswer(
  context: MediaAnswerContext,
  { room, component }: ParsedRequest<'component'>,
): AnswerOf<'component'> {
  const found = roomNamed(context, room).components.find(({ id }) => id === component);
  const state = context.sources.rooms.componentState(room, component);
  if (found === undefined || state === undefined) {
    throw new InspectionError('UNKNOWN_COMPONENT', `the room ${room} has no component ${component}`);
  }
  const { subscribeMode, origins, receives, details } = state;

  return {
    ...componentLine(context, room, found),
    subscribeMode,
    origins: [...origins],
    receives: [...receives],
    details: shown(context, details),
  };
}
