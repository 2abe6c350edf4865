import type { PlacementDecision } from '@bloom/server-sdk';

/** Each node's report when a room was placed, and the resulting decision. */
export function PlacementTable({ placement: { nodes, chosen } }: { readonly placement: PlacementDecision }) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls sideways on narrow screens
    <div className="scroll" role="region" aria-label="Figures of the placement" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">Rooms</th>
            <th scope="col">Forwarded tracks</th>
            <th scope="col">Verdict</th>
          </tr>
        </thead>
        <tbody>
          {nodes.map(({ node, rooms, forwardedTracks, failure, verdict, draining }) => (
            <tr key={node} className={node === chosen ? 'chosen' : ''}>
              <th scope="row">{node}</th>
              <td>{rooms ?? '–'}</td>
              <td>{forwardedTracks ?? '–'}</td>
              <td>{failure ?? `${verdict}${draining === true ? ', draining' : ''}`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
