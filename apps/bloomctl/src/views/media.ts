import type { AnswerOf } from '@bloom/inspection';
import { paint, printable, type Screen, wrap } from '../text/style.js';
import { type Cell, type Column, table } from '../text/table.js';
import { counted, kilobits, megabits, percent, shortNode, size, span } from '../text/units.js';
import { compact } from './trace.js';

const ROOMS: readonly Column[] = [
  { title: 'ROOM', shrinksTo: 12 },
  { title: 'NODE', shrinksTo: 8 },
  { title: 'PEERS', align: 'right' },
  { title: 'CONNECTED', align: 'right', drop: 1 },
  { title: 'TRACKS', align: 'right' },
  { title: 'COMPONENTS', shrinksTo: 10, drop: 2 },
];

type Unreachable = AnswerOf<'rooms'>['unreachable'];

export function unreachableLines(unreachable: Unreachable, screen: Screen): string[] {
  return unreachable.map(({ name, reason }) => paint(screen, 'red', printable(`${name} does not answer: ${reason}`)));
}

export function roomsView({ rooms, total, unreachable }: AnswerOf<'rooms'>, screen: Screen): string[] {
  const rows = rooms.map(({ id, node, peers, connected, tracks, components }) => [
    id,
    shortNode(node),
    String(peers),
    String(connected),
    String(tracks),
    kinds(components),
  ]);
  const left = total > rooms.length ? `, the first ${rooms.length} here` : '';
  return [
    ...(rows.length === 0 ? [] : table(ROOMS, rows, screen)),
    ...unreachableLines(unreachable, screen),
    `${counted(total, 'room')}${left}.`,
  ];
}

function kinds(components: Record<string, number>): string {
  return Object.entries(components)
    .map(([kind, n]) => (n === 1 ? kind : `${n} ${kind}`))
    .join(', ');
}

const PEERS: readonly Column[] = [
  { title: 'PEER', shrinksTo: 10 },
  { title: 'NAME', shrinksTo: 8 },
  { title: 'CLIENT', drop: 5 },
  { title: 'STATUS' },
  { title: 'ICE', drop: 2 },
  { title: 'DTLS', drop: 3 },
  { title: 'WORKER', align: 'right', drop: 4 },
  { title: 'TRACKS', shrinksTo: 8 },
  { title: 'IN', align: 'right' },
  { title: 'OUT', align: 'right' },
  { title: 'ESTIMATE', align: 'right', drop: 1 },
  { title: 'RTT', align: 'right' },
];

const COMPONENTS: readonly Column[] = [
  { title: 'COMPONENT', shrinksTo: 12 },
  { title: 'TYPE' },
  { title: 'TRACKS', shrinksTo: 8 },
  { title: 'PROPERTIES', shrinksTo: 12 },
];

type Tracks = AnswerOf<'room'>['componentList'][number]['tracks'];

export function roomView(room: AnswerOf<'room'>, screen: Screen): string[] {
  const { id, node, peers, connected, config, endpoint, peerList, componentList, tracks } = room;
  const where =
    endpoint === null
      ? 'no media address'
      : `media on ${endpoint.address}:${endpoint.port}${endpoint.tcpPort === null ? '' : ` (tcp ${endpoint.tcpPort})`}`;
  const rows = peerList.map((peer): Cell[] => [
    peer.id,
    peer.name ?? '–',
    peer.client ?? '–',
    { text: peer.status, style: peer.status === 'connected' ? 'green' : 'yellow' },
    peer.ice ?? '–',
    peer.dtls ?? '–',
    peer.worker?.toString() ?? '–',
    trackList(peer.tracks),
    size(peer.bytesReceived),
    size(peer.bytesSent),
    peer.estimationBps === null ? '–' : megabits(peer.estimationBps),
    peer.roundTripMs === null ? '–' : span(peer.roundTripMs),
  ]);
  return [
    ...wrap(`room ${printable(id)} on ${node}   ${where}   ${printable(settings(config))}`, screen),
    ...(rows.length === 0 ? [] : table(PEERS, rows, screen)),
    ...(componentList.length === 0
      ? []
      : table(
          COMPONENTS,
          componentList.map((component) => [
            component.id,
            component.type,
            trackList(component.tracks),
            compact(component.properties),
          ]),
          screen,
        )),
    `${counted(peers, 'peer')}, ${connected} connected, ${counted(componentList.length, 'component')}, ${counted(tracks, 'track')}.`,
  ];
}

const TRANSPORTS: readonly Column[] = [
  { title: 'PEER', shrinksTo: 10 },
  { title: 'NAME', shrinksTo: 8, drop: 1 },
  { title: 'WORKER', align: 'right' },
  { title: 'ADDRESS', drop: 2 },
  { title: 'WHY', shrinksTo: 44 },
];

export function mediaView(
  { room, node, workers, packetsCrossed, peerList }: AnswerOf<'media'>,
  screen: Screen,
): string[] {
  const now = workers.map(
    ({ worker, busy, transports, rooms }) =>
      `worker ${worker}: ${percent(busy, 0)} busy, ${counted(transports, 'transport')}, ${counted(rooms, 'room')}`,
  );
  const rows = peerList.map(({ id, name, worker, local, why }) => [id, name ?? '–', String(worker), local, why]);
  const used = new Set(peerList.map(({ worker }) => worker)).size;
  return [
    ...wrap([`room ${printable(room)} on ${node}`, ...now].join('   '), screen),
    ...(rows.length === 0 ? [] : table(TRANSPORTS, rows, screen)),
    `${counted(peerList.length, 'transport')} on ${counted(used, 'worker')}; ${counted(packetsCrossed, 'packet')} of all rooms crossed between workers.`,
  ];
}

/** Returns the settings that have a value. */
function settings(config: unknown): string {
  const set = Object.entries(config ?? {}).filter(([key, value]) => value !== null && key !== 'roomId');
  return set.map(([key, value]) => `${key} ${compact(value)}`).join(', ');
}

function trackList(tracks: Tracks): string {
  if (tracks.length === 0) return '–';
  const audio = tracks.filter(({ kind }) => kind === 'audio').length;
  const parts = [
    ...(audio > 0 ? [`${audio} audio`] : []),
    ...(tracks.length > audio ? [`${tracks.length - audio} video`] : []),
  ];
  return parts.join(', ');
}

const OUTBOUND: readonly Column[] = [
  { title: 'TRACK', shrinksTo: 8 },
  { title: 'FROM', shrinksTo: 6 },
  { title: 'KIND' },
  { title: 'CODEC', drop: 4 },
  { title: 'LAYER (want)' },
  { title: 'OUT kb/s', align: 'right' },
  { title: 'LOSS', align: 'right' },
  { title: 'NACK/s', align: 'right', drop: 1 },
  { title: 'PLI/s', align: 'right', drop: 2 },
  { title: 'RTX/s', align: 'right', drop: 3 },
  { title: 'RTT', align: 'right' },
];

const INBOUND: readonly Column[] = [
  { title: 'TRACK', shrinksTo: 8 },
  { title: 'KIND' },
  { title: 'CODEC', drop: 3 },
  { title: 'LAYER' },
  { title: 'IN kb/s', align: 'right' },
  { title: 'PACKETS/s', align: 'right', drop: 4 },
  { title: 'LOSS', align: 'right' },
  { title: 'NACK/s', align: 'right', drop: 1 },
  { title: 'PLI/s', align: 'right', drop: 2 },
  { title: 'JITTER', align: 'right' },
];

type Peer = AnswerOf<'peer'>;
type Outbound = Peer['outbound'][number];

/** `may publish audio; may not subscribe; own metadata shown` */
function permissionsText({ publish, subscribe, metadata }: NonNullable<Peer['permissions']>): string {
  const kinds = publish === true ? ['anything'] : publish === false ? [] : publish;
  return [
    kinds.length === 0 ? 'may not publish' : `may publish ${kinds.join(', ')}`,
    subscribe ? 'may subscribe' : 'may not subscribe',
    metadata ? 'own metadata shown' : 'own metadata hidden',
  ].join('; ');
}

/** `data channels: chat, cursor (unordered, 0 retransmissions, opened by the server); 12 kB wait` */
function dataText({ waitingBytes, channels }: NonNullable<Peer['data']>): string {
  const each = channels.map(({ label, openedBy, ordered, maxRetransmits, maxLifetimeMs }) => {
    const notes = [
      ...(ordered ? [] : ['unordered']),
      ...(maxRetransmits === undefined ? [] : [counted(maxRetransmits, 'retransmission')]),
      ...(maxLifetimeMs === undefined ? [] : [`for ${span(maxLifetimeMs)}`]),
      ...(openedBy === 'client' ? [] : ['opened by the server']),
    ];
    return `${printable(label)}${notes.length === 0 ? '' : ` (${notes.join(', ')})`}`;
  });
  const waiting = waitingBytes === 0 ? [] : [`${size(waitingBytes)} wait`];
  return `data channels: ${[each.length === 0 ? 'none' : each.join(', '), ...waiting].join('; ')}`;
}

function lossy(part: number): Cell {
  return { text: percent(part, 1), style: part >= 0.05 ? 'red' : part >= 0.01 ? 'yellow' : undefined };
}

/** `   media failed: NO_CHECKS`; empty if all is well. */
function mediaText(media: NonNullable<Peer['transport']>['media']): string {
  if (media === undefined || (media.state === 'connected' && media.problem === undefined)) return '';
  return `   media ${media.state}${media.problem === undefined ? '' : `: ${media.problem}`}`;
}

export function peerView(peer: Peer, screen: Screen): string[] {
  const { id, name, status, transport, inbound, outbound, permissions, data } = peer;
  const shownName = name === undefined || name === null ? '' : ` (${printable(name)})`;
  const client = typeof peer.client === 'string' ? ` with ${printable(peer.client)}` : '';
  const ice =
    transport === null
      ? 'no transport'
      : `ICE ${transport.ice} ${transport.protocol} ${transport.local}${typeof transport.worker === 'number' ? ` on worker ${transport.worker}` : ''} <-> ${transport.remote ?? 'none yet'}   DTLS ${transport.dtls}${mediaText(transport.media)}   ${size(transport.bytesReceived)} in, ${size(transport.bytesSent)} out`;
  const sent = outbound.map((track): Cell[] => [
    track.track,
    track.from ?? '–',
    track.kind ?? '–',
    track.codec ?? '–',
    layer(track),
    kilobits(track.bps),
    lossy(track.loss),
    track.nackPerS.toFixed(1),
    track.pliPerS.toFixed(1),
    track.retransmittedPerS.toFixed(1),
    track.roundTripMs === null ? '–' : span(track.roundTripMs),
  ]);
  const received = inbound.map((track): Cell[] => [
    track.track,
    track.kind,
    track.codec,
    track.kind === 'audio' ? '–' : `${track.variant}${track.active ? '' : ' (silent)'}`,
    kilobits(track.bps),
    track.packetsPerS.toFixed(0),
    lossy(track.loss),
    track.nackPerS.toFixed(1),
    track.pliPerS.toFixed(1),
    span(track.jitterMs),
  ]);
  return [
    ...wrap(
      `peer ${printable(id)}${shownName}${client} on ${peer.node}   websocket ${status === 'connected' ? 'open' : 'closed'}   ${ice}`,
      screen,
    ),
    ...(permissions === undefined ? [] : wrap(permissionsText(permissions), screen)),
    ...(sent.length === 0 ? ['receives nothing'] : table(OUTBOUND, sent, screen)),
    ...(received.length === 0 ? ['sends nothing'] : table(INBOUND, received, screen)),
    ...(data === undefined ? [] : wrap(dataText(data), screen)),
    ...(transport === null ? [] : wrap(estimate(transport, outbound), screen)),
  ];
}

function layer({ kind, variant, target, layers, reason }: Outbound): Cell {
  if (kind === 'audio') return '–';
  // A track without variants has no target.
  const isReduced = layers !== null && reason === 'low_bandwidth';
  if (target === null) return { text: layers ?? variant ?? 'none', style: isReduced ? 'yellow' : undefined };
  const shown = layers === null ? '' : ` ${layers}`;
  const differs = variant !== target || (isReduced && leavesOut(layers));
  return { text: `${variant ?? 'none'} (${target})${shown}`, style: differs ? 'yellow' : undefined };
}

/** Returns whether layers such as `S1T2 of S2T2` are not all. */
function leavesOut(layers: string): boolean {
  const [flowing, all] = layers.split(' of ');
  return flowing !== all;
}

/** `estimate 0.61 Mb/s, used 0.44; t7: held at m (h needs 1.10 Mb/s): bandwidth` */
function estimate({ estimationBps, usedBps }: NonNullable<Peer['transport']>, outbound: readonly Outbound[]): string {
  const held = outbound
    .filter(({ kind, variant, target }) => kind !== 'audio' && target !== null && variant !== target)
    .map(({ track, variant, target, targetBps, reason }) => {
      const needs =
        targetBps === null ? `${target} does not flow` : `${target} needs ${(targetBps / 1_000_000).toFixed(2)}`;
      return `${printable(track)}: ${variant === null ? 'nothing flows' : `held at ${variant}`} (${needs}): ${reason}`;
    });
  const reduced = outbound
    .filter(({ layers, reason }) => layers !== null && leavesOut(layers) && reason === 'low_bandwidth')
    .map(({ track, layers, reason }) => `${printable(track)}: held at ${layers}: ${reason}`);
  const used = `estimate ${megabits(estimationBps)}, used ${(usedBps / 1_000_000).toFixed(2)}`;
  return [used, ...held, ...reduced].join('; ');
}

const ALL_COMPONENTS: readonly Column[] = [
  { title: 'ROOM', shrinksTo: 10 },
  { title: 'COMPONENT', shrinksTo: 12 },
  { title: 'TYPE' },
  { title: 'NODE', shrinksTo: 8, drop: 2 },
  { title: 'TRACKS', shrinksTo: 7, drop: 1 },
  { title: 'PROPERTIES', shrinksTo: 12 },
];

export function componentsView({ components, total, unreachable }: AnswerOf<'components'>, screen: Screen): string[] {
  const rows = components.map(({ room, id, type, node, tracks, properties }) => [
    room,
    id,
    type,
    shortNode(node),
    trackList(tracks),
    compact(properties),
  ]);
  const left = total > components.length ? `, the first ${components.length} here` : '';
  return [
    ...(rows.length === 0 ? [] : table(ALL_COMPONENTS, rows, screen)),
    ...unreachableLines(unreachable, screen),
    `${counted(total, 'component')}${left}.`,
  ];
}

export function componentView(component: AnswerOf<'component'>, screen: Screen): string[] {
  const { id, type, room, node, tracks, subscribeMode, origins, receives, properties, details } = component;
  const block = (label: string, value: unknown): string[] =>
    value === null || value === undefined
      ? []
      : [
          paint(screen, 'bold', label),
          ...JSON.stringify(value, null, 2)
            .split('\n')
            .map((line) => `  ${printable(line)}`),
        ];
  const mode =
    subscribeMode === null ? '' : `   subscribes ${subscribeMode === 'auto' ? 'to everything' : 'to chosen endpoints'}`;
  return [
    ...wrap(
      `component ${printable(id)} (${type}) in ${printable(room)} on ${node}   tracks ${trackList(tracks)}${mode}`,
      screen,
    ),
    ...(origins.length === 0 ? [] : wrap(`subscribed to ${printable(origins.join(', '))}`, screen)),
    ...(receives.length === 0
      ? []
      : wrap(
          `receives ${printable(receives.map(({ trackId, origin }) => `${trackId} of ${origin}`).join(', '))}`,
          screen,
        )),
    ...block('properties', properties),
    ...block('details', details),
  ];
}
