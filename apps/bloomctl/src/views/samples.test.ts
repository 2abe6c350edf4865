import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { loadSchemas, type RequestKind, type StreamKind } from '@bloom/inspection';
import type { Screen } from '../text/style.js';
import { widthOf } from '../text/style.js';
import { newModel, withItem, withLost } from '../top/model.js';
import { topFrame } from '../top/frame.js';
import { actorView, stateView } from './actor.js';
import { actorsView, actorTree, mailboxView } from './actors.js';
import * as answers from '../testing/index.js';
import { NOW } from '../testing/index.js';
import { clusterView, drainView, eventView, faultsView, nodesView } from './cluster.js';
import { doctorView } from './doctor.js';
import { logView } from './logs.js';
import { componentsView, componentView, mediaView, peerView, roomsView, roomView } from './media.js';
import { mixView, peerListView, permissionsView, recordingsView, roomListView } from './people.js';
import { decisionView, loadView, movedLine } from './placement.js';
import { processView } from './process.js';
import { pathView, traceView } from './trace.js';

const [A, B] = ['a@sfu-1.internal', 'b@sfu-2.internal'] as const;
const FOLDER = join(import.meta.dirname, 'samples');

const drained = answers.nodes.nodes[2]?.drain;
if (!drained) throw new Error('no node drains in the fixture');
const model = answers.top.reduce(withItem, newModel([A, B, 'c@sfu-3.internal'], 2_000, 'queue'));

const views: Record<string, (screen: Screen) => readonly string[]> = {
  nodes: (screen) => nodesView(answers.nodes, A, screen),
  drain: (screen) => drainView({ ...drained, node: B }, NOW, screen),
  moved: () =>
    [
      { to: A, reason: null },
      { to: null, reason: `${A} is draining` },
    ].map((answer) => movedLine({ room: 'kitchen', from: B, ms: 412, ...answer })),
  'cluster-whole': (screen) => clusterView(answers.whole, NOW, screen),
  'cluster-partial': (screen) => clusterView(answers.partial, NOW, screen),
  'cluster-split': (screen) => clusterView(answers.split, NOW, screen),
  event: (screen) => eventView(answers.event, screen),
  faults: (screen) => faultsView({ ...answers.faults, node: B }, NOW, screen),
  actors: (screen) => actorsView([{ node: B, ...answers.actors }], screen),
  'actors-all': (screen) =>
    actorsView(
      [A, B].map((node) => ({ node, ...answers.actors })),
      screen,
    ),
  'actors-tree': (screen) => actorTree({ node: B, ...answers.actors }, screen),
  actor: (screen) => actorView({ ...answers.actor, node: B }, NOW, screen),
  state: (screen) => stateView(answers.state, B, screen),
  mailbox: (screen) => mailboxView(answers.mailbox, B, screen),
  trace: (screen) => answers.traced.flatMap((item) => traceView(item, false, screen)),
  'trace-several': (screen) => answers.traced.flatMap((item) => traceView(item, true, screen)),
  path: (screen) => pathView(answers.path, screen),
  ps: (screen) => processView(B, answers.ps, screen),
  rooms: (screen) => roomsView(answers.rooms, screen),
  room: (screen) => roomView(answers.room, screen),
  media: (screen) => mediaView(answers.media, screen),
  peer: (screen) => peerView(answers.peer, screen),
  'peer-failed': (screen) => peerView(answers.failedPeer, screen),
  components: (screen) => componentsView(answers.components, screen),
  component: (screen) => componentView(answers.component, screen),
  'room-list': (screen) => roomListView(answers.roomList, screen),
  'peer-list': (screen) => peerListView(answers.peerList, screen),
  permissions: (screen) => permissionsView({ publish: ['audio', 'data'], subscribe: true, metadata: false }, screen),
  mix: (screen) => mixView({ mix: answers.mix, movie: null }, screen),
  recordings: (screen) => recordingsView(answers.recordingList, screen),
  load: (screen) => loadView(answers.load, true, screen),
  placement: (screen) => decisionView(answers.decision, screen),
  'placement-dry-run': (screen) => decisionView(answers.dryRun, screen),
  log: (screen) => logView(answers.log, screen),
  top: (screen) => topFrame(model, NOW, screen),
  'top-opened': (screen) =>
    topFrame(
      {
        ...withLost(model, 'c@sfu-3.internal', 'the link is gone'),
        paused: true,
        open: { path: '/rooms/hall/peers/zoe', node: A, lines: actorView({ ...answers.actor, node: A }, NOW, screen) },
      },
      NOW,
      { ...screen, height: 18 },
    ),
  'doctor-refused': (screen) => doctorView(answers.refused, screen),
  'doctor-healthy': (screen) => doctorView(answers.healthy, screen),
};

const SCREENS: readonly [title: string, screen: Screen][] = [
  ['80 columns', { width: 80, colour: false }],
  ['160 columns', { width: 160, colour: false }],
  ['80 columns, colour', { width: 80, colour: true }],
  ['160 columns, colour', { width: 160, colour: true }],
];

/** Returns the sample in its stored form: all screens in one file, with readable escapes. */
function sampleOf(view: (screen: Screen) => readonly string[]): string {
  return SCREENS.map(
    ([title, screen]) => `=== ${title}\n${view(screen).join('\n').replaceAll('\u001b', '\\e')}\n`,
  ).join('\n');
}

describe('view', () => {
  test.each(Object.entries(views))('%s matches its stored sample', (name, view) => {
    const file = join(FOLDER, `${name}.txt`);
    const sample = sampleOf(view);
    // Look at the difference before you keep it: UPDATE_SAMPLES=1.
    if (process.env['UPDATE_SAMPLES'] === '1') writeFileSync(file, sample);
    expect(existsSync(file)).toBe(true);
    expect(sample).toBe(readFileSync(file, 'utf8'));
  });

  test.each(Object.entries(views))('%s stays within 80 columns, and colour changes nothing else', (_, view) => {
    const plain = view({ width: 80, colour: false });
    // oxlint-disable-next-line no-control-regex
    const stripped = view({ width: 80, colour: true }).map((line) => line.replaceAll(/\u001b\[\d+m/g, ''));
    expect(stripped).toEqual(plain);
    for (const line of plain) {
      expect(widthOf(line)).toBeLessThanOrEqual(80);
      // oxlint-disable-next-line no-control-regex
      expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
    }
  });
});

test('lists members of different releases with the protocols they speak', () => {
  const [old, ...others] = answers.nodes.nodes;
  if (!old) throw new Error('no node in the fixture');
  const spoken = { version: '0.2.0', protocols: { min: 1, max: 2 } };
  const nodes = [{ ...old, version: '0.1.0' }, ...others.map((node) => ({ ...node, ...spoken }))];
  const lines = nodesView({ nodes, unreachable: [] }, A, { width: 160, colour: false }).join(' ');
  expect(lines).toMatch(/Releases differ: a of 0\.1\.0 speaks protocol 1, b of 0\.2\.0 speaks protocol 1 to 2,/);
});

test('shows an actor with its restarts within the window, not all of them', () => {
  const lines = actorView({ ...answers.actor, restarts: 5, node: B }, NOW, { width: 160, colour: false });
  expect(lines[1]).toMatch(/strategy restart, 1 of 3 in 1 min$/);
  expect(lines.at(-1)).toMatch(/restart 5\)$/);
});

test('shows the layers of a scalable stream, and why some are left out', () => {
  const scalable = { ...answers.peer.outbound[0]!, target: null, layers: 'S1T2 of S2T2', reason: 'low_bandwidth' };
  const lines = peerView({ ...answers.peer, outbound: [scalable] }, { width: 160, colour: false });
  expect(lines.join(' ')).toMatch(/ video {2}VP8 +S1T2 of S2T2 .*t7: held at S1T2 of S2T2: low_bandwidth/);
});

test('shows the variant of a track in several sizes with its temporal layers, and which of them are left out', () => {
  const shown = (layers: string): string => {
    const track = { ...answers.peer.outbound[0]!, variant: 'm', target: 'h', layers, reason: 'low_bandwidth' } as const;
    return peerView({ ...answers.peer, outbound: [track] }, { width: 200, colour: false }).join(' ');
  };
  expect(shown('S0T2 of S0T2')).toMatch(/ m \(h\) S0T2 of S0T2 /);
  expect(shown('S0T2 of S0T2')).not.toContain('held at S0T2');
  expect(shown('S0T1 of S0T2')).toContain('held at S0T1 of S0T2: low_bandwidth');
});

test('has sample answers that are valid on the wire', async () => {
  const { requests, streams } = await loadSchemas();
  const given: [RequestKind, unknown][] = [
    ['nodes', answers.nodes],
    ['cluster', answers.whole],
    ['cluster', answers.partial],
    ['cluster', answers.split],
    ['faults', answers.faults],
    ['actors', answers.actors],
    ['actor', answers.actor],
    ['state', answers.state],
    ['mailbox', answers.mailbox],
    ['path', answers.path],
    ['ps', answers.ps],
    ['rooms', answers.rooms],
    ['room', answers.room],
    ['media', answers.media],
    ['peer', answers.peer],
    ['components', answers.components],
    ['component', answers.component],
    ['load', answers.load],
    ['placement-explain', answers.decision],
    ['placement-dry-run', answers.dryRun],
    ['logs', { lines: [answers.log] }],
  ];
  for (const [kind, answer] of given) expect(requests[kind].answer.parse(answer)).toEqual(answer);
  const items: [StreamKind, unknown][] = [
    ['cluster-events', answers.event],
    ...answers.traced.map((item): [StreamKind, unknown] => ['trace', item]),
    ...answers.top.map((item): [StreamKind, unknown] => ['top', item]),
    ['log-tail', answers.log],
  ];
  for (const [kind, item] of items) expect(streams[kind].item.parse(item)).toEqual(item);
});
