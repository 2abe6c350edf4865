import type { Cluster, ClusterNode } from '@bloom/server-sdk';
import { hashOf } from '../router.js';
import { useSession } from '../session.js';
import { Badge, Failure, Loading, Page, Unanswered } from '../ui/parts.js';
import { useAction } from '../ui/use-action.js';
import { usePolled } from '../ui/use-polled.js';
import { Notice } from '../ui/notice.js';
import { PlacementTable } from './placement-table.js';

const PAUSE_MS = 2_000;
const VERDICTS = {
  whole: { tone: 'good', text: 'every node sees every other' },
  partial: { tone: 'warn', text: 'some links are missing' },
  split: { tone: 'bad', text: 'the cluster is split' },
} as const;

/** The nodes, their load, their links, and where the next room would go. */
export function ClusterView() {
  const { api } = useSession();
  const { value, problem } = usePolled(() => Promise.all([api.cluster(), api.placement()]), {
    key: 'cluster',
    pauseMs: PAUSE_MS,
  });
  const [cluster, next] = value ?? [];
  const verdict = cluster === undefined ? undefined : VERDICTS[cluster.verdict];
  return (
    <Page
      title="Cluster"
      aside={
        cluster !== undefined &&
        verdict !== undefined &&
        (cluster.nodes.length > 1 || cluster.verdict !== 'whole' ? (
          <Badge tone={verdict.tone}>{verdict.text}</Badge>
        ) : (
          'a single node'
        ))
      }
    >
      <Unanswered problem={problem} />
      {cluster === undefined && problem === null && <Loading />}
      {cluster?.unreachable.map(({ name, reason }) => (
        <Notice key={name} kind="problem" title={`${name} does not answer`}>
          {reason}
        </Notice>
      ))}
      <ul className="nodes">
        {cluster?.nodes.map((node) => (
          <NodeCard
            key={node.name}
            node={node}
            asked={node.name === cluster.asked}
            isAlone={cluster.nodes.length === 1}
          />
        ))}
      </ul>
      {next !== undefined && (
        <section className="card">
          <h2>Where the next room would go</h2>
          <p>
            {next.chosen === null ? 'No node takes rooms.' : <strong>{next.chosen}</strong>}
            {next.chosen !== null && ', the least loaded of those that take rooms'}
          </p>
          <PlacementTable placement={next} />
        </section>
      )}
      {cluster !== undefined && cluster.links.length > 0 && <Links cluster={cluster} />}
    </Page>
  );
}

interface NodeCardProps {
  readonly node: ClusterNode;
  readonly asked: boolean;
  readonly isAlone: boolean;
}

function NodeCard({ node, asked, isAlone }: NodeCardProps) {
  const { api } = useSession();
  const action = useAction();
  const draining = node.state === 'draining';
  const where = asked ? {} : { node: node.name };
  const figures: readonly [string, string | number][] = [
    ['Rooms', node.rooms],
    ['People', node.peers],
    ['Forwarded tracks', node.forwardedTracks],
    ['CPU', `${node.cpu.toFixed(2)} cores`],
    ['Event loop p99', `${node.loopP99Ms.toFixed(1)} ms`],
    ['Up for', duration(node.uptime)],
    ['Version', node.version],
  ];
  return (
    <li className="card">
      <div className="card-head">
        <h2>{node.name}</h2>
        <Badge tone={draining ? 'warn' : 'good'}>{draining ? 'draining' : 'up'}</Badge>
        {asked && <Badge>serves this page</Badge>}
      </div>
      <Failure action={action} />
      <dl className="figures">
        {figures.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <div className="inline">
        <button
          type="button"
          aria-disabled={action.busy}
          onClick={() => void action.run(() => (draining ? api.undrain(where) : api.drain(where)))}
        >
          {draining ? 'Take new rooms again' : 'Drain: take no new rooms'}
          <span className="unseen"> on {node.name}</span>
        </button>
        {!isAlone && (!draining || node.rooms > 0) && (
          <button
            type="button"
            aria-disabled={action.busy}
            onClick={() => void action.run(() => api.drain({ ...where, move: true }))}
          >
            {draining ? 'Move its rooms away' : 'Drain and move'}
            <span className="unseen"> on {node.name}</span>
          </button>
        )}
      </div>
      <p role="status" className="hint">
        {node.movesUntil !== null && movesText(node)}
      </p>
      {node.staying.length > 0 && (
        <ul className="plain">
          {node.staying.map(({ room, reason }) => (
            <li key={room}>
              <a href={hashOf({ view: 'rooms', roomId: room })}>{room}</a> stays: {reason}
            </li>
          ))}
        </ul>
      )}
      {node.drainDeadline !== null && (
        <p className="hint">Takes rooms again at {new Date(node.drainDeadline).toLocaleTimeString()}</p>
      )}
    </li>
  );
}

function movesText({ rooms, movesUntil }: ClusterNode): string {
  if (rooms === 0) return 'All rooms have moved away';
  const left = rooms === 1 ? '1 room is left' : `${rooms} rooms are left`;

  return (movesUntil ?? 0) > Date.now() ? `Moving rooms away: ${left}` : `${left}, until it ends`;
}

function Links({ cluster: { links } }: { readonly cluster: Cluster }) {
  return (
    <section className="card">
      <h2>Links</h2>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls sideways on narrow screens */}
      <div className="scroll" role="region" aria-label="Links between nodes" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">From</th>
              <th scope="col">To</th>
              <th scope="col">State</th>
              <th scope="col">Since</th>
              <th scope="col">Last error</th>
            </tr>
          </thead>
          <tbody>
            {links.map(({ from, to, state, since, lastError }) => (
              <tr key={`${from} ${to}`}>
                <th scope="row">{from}</th>
                <td>{to}</td>
                <td>
                  <Badge tone={state === 'up' ? 'good' : state === 'connecting' ? 'warn' : 'bad'}>{state}</Badge>
                </td>
                <td>{since === null ? '–' : new Date(since).toLocaleTimeString()}</td>
                <td>{lastError ?? '–'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function duration(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} days`;
}
