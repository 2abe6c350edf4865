import { useSession } from '../../session.js';
import { usePolled } from '../../ui/use-polled.js';
import { PlacementTable } from '../placement-table.js';

const PAUSE_MS = 60_000;

/** Shows why the room was placed on its node. */
export function Placement({ roomId }: { readonly roomId: string }) {
  const { api } = useSession();
  const { value, problem } = usePolled(() => api.placement(roomId), { key: roomId, pauseMs: PAUSE_MS });
  return (
    <section className="card">
      <h2>Where it runs</h2>
      {problem !== null && (
        <p className="hint">
          {problem.code === 'no-such-room'
            ? 'No node has a record of this decision: each keeps only its latest, and a node without a cluster makes none.'
            : problem.message}
        </p>
      )}
      {value !== undefined && (
        <>
          <p>
            {value.asked} placed it on <strong>{value.chosen ?? 'no node'}</strong> at{' '}
            {new Date(value.at).toLocaleTimeString()}, by these figures:
          </p>
          <PlacementTable placement={value} />
        </>
      )}
    </section>
  );
}
