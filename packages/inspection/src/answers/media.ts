import { printableUrl } from '@bloom/log';
import { inTime, sleep } from '@bloom/time';
import type { ComponentView, PeerView, PublishKind, RoomView } from '@bloom/rooms';
import { explainChoice, type MediaEndpoint, type RoomMediaStats } from '@bloom/sfu';
import type { Answers, Asker, Inspector } from '../inspector/inspector.js';
import { matcher } from '../inspector/pattern.js';
import type { Redactor } from '../inspector/redact.js';
import { InspectionError } from '../errors.js';
import type { AnswerOf } from '../protocol/types.js';
import type { InspectionSources } from '../sources.js';
import { peerRates, transportOf } from './peer-rates.js';

const MEMBER_TIMEOUT_MS = 1_000;
/** Limits for properties and metadata, which come from users. */
const CUT = { depth: 6, bytes: 4_096 };
/** Time that a media worker has to answer before its figures are left out. */
const STATS_TIMEOUT_MS = 1_000;

/** Maximum number of characters in a peer's name. */
const MAX_NAME = 64;

type RoomLine = AnswerOf<'rooms'>['rooms'][number];
type ComponentLine = AnswerOf<'components'>['components'][number];

export interface MediaAnswersOptions {
  sources: InspectionSources;
  redactor: Redactor;
  inspector: () => Inspector;
}

export function mediaAnswers({ sources, redactor, inspector }: MediaAnswersOptions): Answers {
  const { engine, rooms, self } = sources;
  const json = (value: unknown): unknown => redactor.show(value, CUT).value;

  const viewOf = (roomId: string): RoomView => {
    const view = rooms.views().find(({ id }) => id === roomId);
    if (view === undefined) throw new InspectionError('UNKNOWN_ROOM', `${self} has no room ${roomId}`);

    return view;
  };
  const roomLine = ({ id, peers, components }: RoomView): RoomLine => {
    const kinds: Record<string, number> = {};
    for (const { type } of components) kinds[type] = (kinds[type] ?? 0) + 1;

    return {
      id,
      node: self,
      peers: peers.length,
      connected: peers.filter(({ status }) => status === 'connected').length,
      components: kinds,
      tracks: [...peers, ...components].reduce((sum, { tracks }) => sum + tracks.length, 0),
    };
  };
  const trackOf = ({ id, type, metadata, muted }: PeerView['tracks'][number]) => ({
    id,
    kind: type,
    metadata: json(metadata),
    ...(muted === undefined ? {} : { muted }),
  });
  const nameOf = (metadata: unknown): string | null => {
    const name = nameIn(metadata);

    return name === undefined ? null : redactor.text(name).slice(0, MAX_NAME);
  };
  const componentLine = (roomId: string, { id, type, properties, tracks }: ComponentView): ComponentLine => ({
    node: self,
    room: roomId,
    id,
    type,
    properties: json(properties),
    tracks: tracks.map(trackOf),
  });
  const elsewhere = async <K extends 'rooms' | 'components'>(kind: K, fields: object, asker: Asker) => {
    const timeoutMs = Math.min(MEMBER_TIMEOUT_MS, asker.timeoutMs);

    return await inspector().askMembers(kind, { ...fields, scope: 'node' }, { ...asker, timeoutMs });
  };

  return {
    rooms: async ({ match, scope, limit }, asker) => {
      const wanted = match === null ? () => true : matcher(match);
      const own = rooms.views().filter(({ id }) => wanted(id));
      const others = scope === 'node' || asker.alone ? NO_ANSWERS : await elsewhere('rooms', { match, limit }, asker);
      const lines = [
        ...own.slice(0, limit).map(roomLine),
        ...others.answers.flatMap(({ answer }) => answer.rooms as RoomLine[]),
      ];

      return {
        total: own.length + others.answers.reduce((sum, { answer }) => sum + answer.total, 0),
        rooms: lines.toSorted((a, b) => (a.id < b.id ? -1 : 1)).slice(0, limit),
        unreachable: others.unreachable,
      };
    },

    room: async ({ room }) => {
      const view = viewOf(room);
      const media = rooms.media(room);
      const stats = await statsOf(media);
      const { webhookUrl, ...config } = view.config;
      const first = view.peers.map(({ id }) => media?.endpointOf(id)).find((endpoint) => endpoint !== undefined);

      return {
        ...roomLine(view),
        config: json({ ...config, webhookUrl: webhookUrl === null ? null : printableUrl(webhookUrl) }),
        endpoint:
          first === undefined ? null : { address: first.address, port: first.port, tcpPort: first.tcpPort ?? null },
        peerList: view.peers.map(({ id, status, tracks, metadata }) => {
          const transport = transportOf(stats, id);
          const endpoint = media?.endpointOf(id);
          const roundTrips = transport?.outbound.flatMap(({ roundTripMs }) => roundTripMs ?? []) ?? [];

          return {
            id,
            name: nameOf(metadata),
            status,
            ice: transport?.iceState ?? null,
            dtls: transport?.dtlsState ?? null,
            local: endpoint === undefined ? null : localOf(endpoint),
            worker: endpoint?.worker ?? null,
            tracks: tracks.map(trackOf),
            bytesReceived: transport?.bytesReceived ?? null,
            bytesSent: transport?.bytesSent ?? null,
            estimationBps: transport?.estimationBps ?? null,
            roundTripMs: roundTrips.length === 0 ? null : Math.max(...roundTrips),
          };
        }),
        componentList: view.components.map((component) => componentLine(room, component)),
      };
    },

    media: async ({ room }) => {
      const view = viewOf(room);
      const media = rooms.media(room);
      const { packetsCrossed } = await engine.stats();

      return {
        room,
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
          return [
            { id, name: nameOf(metadata), local: localOf(endpoint), worker: choice.worker, why: explainChoice(choice) },
          ];
        }),
      };
    },

    peer: async ({ room, peer, sampleMs }, { timeoutMs }) => {
      const view = viewOf(room);
      const found = view.peers.find(({ id }) => id === peer);
      if (found === undefined) throw new InspectionError('UNKNOWN_PEER', `the room ${room} has no peer ${peer}`);
      const media = rooms.media(room);
      const samples = await sampleTwice(media, Math.min(sampleMs, timeoutMs / 2));
      const { after } = samples;
      const rates = peerRates({ view, peer, ...samples });
      const transport = transportOf(after, peer);
      const endpoint = media?.endpointOf(peer);
      const choice = media?.choiceOf(peer);

      return {
        room,
        id: peer,
        node: self,
        status: found.status,
        name: nameOf(found.metadata),
        metadata: json(found.metadata),
        ...(found.permissions === undefined
          ? {}
          : { permissions: { ...found.permissions, publish: listOf(found.permissions.publish) } }),
        transport:
          transport === undefined || endpoint === undefined
            ? null
            : {
                ice: transport.iceState,
                dtls: transport.dtlsState,
                media: transport.media,
                protocol: transport.protocol,
                local: localOf(endpoint),
                worker: endpoint.worker ?? null,
                why: choice === undefined ? null : explainChoice(choice),
                remote:
                  transport.remoteAddress === undefined ? null : `${transport.remoteAddress}:${transport.remotePort}`,
                bytesReceived: transport.bytesReceived,
                bytesSent: transport.bytesSent,
                estimationBps: transport.estimationBps ?? null,
                usedBps: rates.usedBps,
              },
        ...(transport?.data === undefined
          ? {}
          : {
              data: {
                waitingBytes: transport.data.waitingBytes,
                channels: transport.data.channels.map((channel) => ({
                  ...channel,
                  label: redactor.text(channel.label),
                })),
              },
            }),
        sampledMs: rates.sampledMs,
        inbound: rates.inbound,
        outbound: rates.outbound,
      };
    },

    components: async ({ room, scope, limit }, asker) => {
      const own = rooms
        .views()
        .filter(({ id }) => room === null || id === room)
        .flatMap(({ id, components }) => components.map((component) => componentLine(id, component)));
      const others =
        scope === 'node' || asker.alone ? NO_ANSWERS : await elsewhere('components', { room, limit }, asker);
      const lines = [...own, ...others.answers.flatMap(({ answer }) => answer.components as ComponentLine[])];

      return {
        total: own.length + others.answers.reduce((sum, { answer }) => sum + answer.total, 0),
        components: lines.slice(0, limit),
        unreachable: others.unreachable,
      };
    },

    component: ({ room, component }) => {
      const found = viewOf(room).components.find(({ id }) => id === component);
      const state = rooms.componentState(room, component);
      if (found === undefined || state === undefined) {
        throw new InspectionError('UNKNOWN_COMPONENT', `the room ${room} has no component ${component}`);
      }
      const { subscribeMode, origins, receives, details } = state;

      return {
        ...componentLine(room, found),
        subscribeMode,
        origins: [...origins],
        receives: [...receives],
        details: json(details),
      };
    },
  };
}

// oxlint-disable-next-line typescript/no-explicit-any
const NO_ANSWERS: { answers: any[]; unreachable: { name: string; reason: string }[] } = {
  answers: [],
  unreachable: [],
};

function localOf({ address, port }: MediaEndpoint): string {
  return `${address}:${port}`;
}

async function statsOf(media: { stats(): Promise<RoomMediaStats> } | undefined): Promise<RoomMediaStats | undefined> {
  if (media === undefined) return undefined;
  const stats = media.stats().catch(() => undefined);

  return await inTime(stats, { timeoutMs: STATS_TIMEOUT_MS, late: () => undefined });
}

interface Samples {
  before: RoomMediaStats | undefined;
  after: RoomMediaStats | undefined;
  /** Time between the samples. */
  ms: number;
}

async function sampleTwice(media: Parameters<typeof statsOf>[0], ms: number, again = true): Promise<Samples> {
  const before = await statsOf(media);
  const from = performance.now();
  await sleep(ms);
  const after = await statsOf(media);
  // Without the first sample, the totals would be mistaken for the difference.
  if (before === undefined && after !== undefined) {
    return again ? await sampleTwice(media, ms, false) : { before, after: undefined, ms };
  }

  return { before, after, ms: performance.now() - from };
}

/** Returns the name of a peer. The backend's metadata take precedence over the client's. */
function nameIn(metadata: unknown): string | undefined {
  const whole = fieldsOf(metadata);
  for (const { name, displayName } of [fieldsOf(whole['server']), fieldsOf(whole['peer']), whole]) {
    for (const candidate of [name, displayName])
      if (typeof candidate === 'string' && candidate !== '') return candidate;
  }

  return undefined;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function listOf(publish: boolean | readonly PublishKind[]): boolean | PublishKind[] {
  return typeof publish === 'boolean' ? publish : [...publish];
}
