// What the HTTP API says about rooms and people, as tables. Everybody's clients write names and metadata, so each cell
// is made printable.
import type { Mix, Peer, Permissions, RecordingList, RoomList, Track } from '../people/answers.js';
import { paint, printable, type Screen } from '../text/style.js';
import { type Cell, type Column, table } from '../text/table.js';
import { counted, percent, size, span } from '../text/units.js';

const ROOMS: readonly Column[] = [
  { title: 'ROOM', shrinksTo: 12 },
  { title: 'PEERS', align: 'right' },
  { title: 'CONNECTED', align: 'right', drop: 1 },
  { title: 'TRACKS', align: 'right' },
  { title: 'COMPONENTS', shrinksTo: 10, drop: 2 },
];

interface Shown extends RoomList {
  /** Also counts rooms that are left out. */
  readonly total: number;
}

export function roomListView({ rooms, total, unreachable }: Shown, screen: Screen): string[] {
  const rows = rooms.map(({ id, config, peers, components }) => {
    const most = config.maxPeers ?? null;

    return [
      id,
      most === null ? String(peers.length) : `${peers.length} of ${most}`,
      String(peers.filter(({ status }) => status === 'connected').length),
      String(peers.reduce((sum, { tracks }) => sum + tracks.length, 0)),
      components.map(({ type }) => type).join(', '),
    ];
  });
  const left = total > rooms.length ? `, the first ${rooms.length} here` : '';

  return [
    ...(rows.length === 0 ? [] : table(ROOMS, rows, screen)),
    ...silentLines(unreachable, 'rooms', screen),
    `${counted(total, 'room')}${left}.`,
  ];
}

function silentLines(nodes: readonly string[], missing: 'rooms' | 'recordings', screen: Screen): string[] {
  return nodes.map((node) => paint(screen, 'red', printable(`${node} does not answer: its ${missing} are missing`)));
}

// Ids are copied into other commands, so they are never cut.
const PEERS: readonly Column[] = [
  { title: 'PEER' },
  { title: 'NAME', shrinksTo: 8 },
  { title: 'STATUS' },
  { title: 'TRACKS', shrinksTo: 8 },
  { title: 'MAY', shrinksTo: 8, drop: 1 },
];

export function peerListView(peers: readonly (Peer & { name: string | null })[], screen: Screen): string[] {
  const rows = peers.map(({ id, name, status, tracks, permissions }) => [
    id,
    name ?? '–',
    status,
    tracks.map(({ type, muted }) => (muted === true ? `${type} (muted)` : type)).join(', ') || '–',
    permissions === undefined ? 'everything' : allowed(permissions),
  ]);
  const connected = peers.filter(({ status }) => status === 'connected').length;

  return [
    ...(rows.length === 0 ? [] : table(PEERS, rows, screen)),
    `${counted(peers.length, 'peer')}, ${connected} connected.`,
  ];
}

function allowed({ publish, subscribe, metadata }: Permissions): string {
  const parts = [
    ...(publish === true
      ? ['publish']
      : publish === false || publish.length === 0
        ? []
        : [`publish ${publish.join('+')}`]),
    ...(subscribe ? ['subscribe'] : []),
    ...(metadata ? ['metadata'] : []),
  ];

  return parts.join(', ') || 'nothing';
}

export function permissionsView({ publish, subscribe, metadata }: Permissions, screen: Screen): string[] {
  const yes = (value: boolean): string => (value ? 'yes' : 'no');

  return pairs(
    [
      ['publish', typeof publish === 'boolean' ? (publish ? 'all' : 'none') : publish.join(',') || 'none'],
      ['subscribe', yes(subscribe)],
      ['metadata', yes(metadata)],
    ],
    screen,
  );
}

interface Added {
  readonly peer: string;
  readonly token: string;
  readonly websocketUrl: string;
  readonly whipUrl: string;
  readonly whepUrl: string;
}

export function addedView({ peer, token, websocketUrl, whipUrl, whepUrl }: Added, screen: Screen): string[] {
  return pairs(
    [
      ['peer', peer],
      ['token', token],
      ['websocket', websocketUrl],
      ['whip', whipUrl],
      ['whep', whepUrl],
    ],
    screen,
  );
}

interface Muted {
  readonly muted: boolean;
  readonly tracks: readonly Track[];
}

export function mutedView({ muted, tracks }: Muted): string[] {
  return tracks.map(({ id, type }) => printable(`${type} ${id} is ${muted ? 'muted' : 'no longer muted'}.`));
}

/** Values are never cut: people copy them. */
function pairs(rows: readonly (readonly [name: string, value: string])[], screen: Screen): string[] {
  const width = Math.max(...rows.map(([name]) => name.length));

  return rows.map(([name, value]) => `${paint(screen, 'bold', name.padEnd(width))}  ${printable(value)}`);
}

const RECORDINGS: readonly Column[] = [
  { title: 'ROOM', shrinksTo: 10 },
  { title: 'PART' },
  { title: 'STATE', shrinksTo: 16 },
  { title: 'MIX', shrinksTo: 8, drop: 1 },
  { title: 'TRACKS', align: 'right', drop: 2 },
  { title: 'LENGTH', align: 'right' },
  { title: 'SIZE', align: 'right' },
];

export function recordingsView({ recordings, unreachable }: RecordingList, screen: Screen): string[] {
  const rows = recordings.map(({ room, part, tracks, seconds, bytes, mix, ...rest }): Cell[] => [
    room,
    part,
    stateOf(rest),
    mix === undefined ? '–' : stateOf(mix),
    String(tracks),
    span(Math.round(seconds) * 1_000),
    size(bytes),
  ]);

  return [
    ...(rows.length === 0 ? [] : table(RECORDINGS, rows, screen)),
    ...silentLines(unreachable, 'recordings', screen),
    `${counted(recordings.length, 'recording')}${rows.length === 0 ? '' : ', newest first'}.`,
  ];
}

function stateOf({ state, progress, reason }: Pick<Mix, 'state' | 'progress' | 'reason'>) {
  if (state === 'failed') return { text: reason === undefined ? state : `${state}: ${reason}`, style: 'red' } as const;

  return { text: progress === undefined ? state : `${state} ${percent(progress)}`, style: undefined };
}

/** Returns what has become of a mix, and the address of its movie. */
export function mixView({ mix, movie }: { mix: Mix; movie: string | null }, screen: Screen): string[] {
  const { layout, width, height, seconds, bytes, missing = [] } = mix;
  const { text, style } = stateOf(mix);
  const made = seconds === undefined ? '' : `, ${span(Math.round(seconds) * 1_000)}, ${size(bytes ?? null)}`;

  return [
    `${paint(screen, style, printable(text))}: ${printable(layout)} of ${width} x ${height}${made}`,
    ...missing.map((part) => paint(screen, 'yellow', `without ${printable(part)}, which cannot be found`)),
    ...(movie === null ? [] : [printable(movie)]),
  ];
}

/** `2026-11-29 12:45 UTC` */
export function timeOf(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
