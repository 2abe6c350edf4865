import type { RoomMove } from '@bloom/server-sdk';
import { useState } from 'react';
import { useSession } from '../../session.js';
import { Dialog, Failure } from '../../ui/parts.js';
import { useAction } from '../../ui/use-action.js';
import { usePolled } from '../../ui/use-polled.js';
import { PlacementTable } from '../placement-table.js';

const PAUSE_MS = 60_000;

/** Shows why the room is on its node, and moves it to another. */
export function Placement({ roomId }: { readonly roomId: string }) {
  const { api } = useSession();
  const [moves, setMoves] = useState(0);
  const [moving, setMoving] = useState(false);
  const { value, problem } = usePolled(() => api.placement(roomId), { key: `${roomId} ${moves}`, pauseMs: PAUSE_MS });
  return (
    <section className="card">
      <div className="card-head">
        <h2>Where it runs</h2>
        <button type="button" onClick={() => setMoving(true)}>
          Move
        </button>
      </div>
      {problem !== null && (
        <p className="hint">
          {problem.code === 'not-found'
            ? 'No node has a record of this decision: each keeps only its latest, and a node without a cluster makes none.'
            : problem.message}
        </p>
      )}
      {value !== undefined && (
        <>
          <p>
            {value.policy === 'ordered' ? 'By order, ' : ''}
            {value.asked} placed it on <strong>{value.chosen ?? 'no node'}</strong> at{' '}
            {new Date(value.at).toLocaleTimeString()}
            {value.policy === 'ordered' ? ', with these figures:' : ', by these figures:'}
          </p>
          <PlacementTable placement={value} />
        </>
      )}
      {moving && <Move roomId={roomId} onClose={() => setMoving(false)} onMoved={() => setMoves(moves + 1)} />}
    </section>
  );
}

interface MoveProps {
  readonly roomId: string;
  readonly onClose: () => void;
  readonly onMoved: () => void;
}

function Move({ roomId, onClose, onMoved }: MoveProps) {
  const { api, live } = useSession();
  const action = useAction();
  const { value: cluster, problem } = usePolled(() => api.cluster(), { key: 'nodes', pauseMs: PAUSE_MS });
  const [moved, setMoved] = useState<RoomMove | null>(null);
  async function move(node: string): Promise<void> {
    setMoved(null);
    const isDone = await action.run(async () => setMoved(await api.moveRoom(roomId, node === '' ? undefined : node)));
    if (!isDone) return;
    live.touch(roomId);
    onMoved();
  }
  return (
    <Dialog title={`Move ${roomId}`} onClose={onClose}>
      <Failure action={action} />
      {problem !== null && <p className="hint">{problem.message}</p>}
      {cluster?.nodes.length === 1 && <p>There is no other node.</p>}
      {cluster !== undefined && cluster.nodes.length > 1 && (
        <form
          className="form"
          onSubmit={(event) => {
            event.preventDefault();
            void move(String(new FormData(event.currentTarget).get('node')));
          }}
        >
          <p>The call continues there; everyone in it reconnects, and the picture stops for a moment.</p>
          <label className="field">
            <span>To</span>
            <select name="node">
              <option value="">the least loaded other node</option>
              {cluster.nodes.map(({ name, state, rooms }) => (
                <option key={name} value={name}>
                  {name}, {state === 'draining' ? 'draining' : rooms === 1 ? '1 room' : `${rooms} rooms`}
                </option>
              ))}
            </select>
          </label>
          <button type="submit" className="primary" aria-disabled={action.busy}>
            Move the room
          </button>
        </form>
      )}
      <p role="status" className="hint">
        {action.busy && 'Moving …'}
        {moved !== null && `Moved from ${moved.from} to ${moved.to} in ${moved.ms} ms`}
      </p>
    </Dialog>
  );
}
