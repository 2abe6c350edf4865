import { useLive } from '../session.js';
import { Notice } from '../ui/notice.js';

/** The nodes whose rooms are missing from the lists. */
export function Unreachable() {
  const { unreachable } = useLive();
  return (
    unreachable.length > 0 && (
      <Notice kind="problem" title="Rooms are missing here">
        {unreachable.join(' and ')} did not answer. The calls there may well go on; see the cluster.
      </Notice>
    )
  );
}
