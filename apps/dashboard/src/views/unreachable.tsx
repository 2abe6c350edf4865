import { useLive } from '../session.js';
import { Notice } from './notice.js';

/** What is missing in the lists, and why. */
export function Unreachable() {
  const { problem, unreachable } = useLive();
  return (
    <>
      {problem !== null && (
        <Notice kind="problem" title={problem.title}>
          {problem.message}
        </Notice>
      )}
      {unreachable.length > 0 && (
        <Notice kind="problem" title="Rooms are missing here">
          {unreachable.join(' and ')} did not answer. Its calls may well go on; see the cluster.
        </Notice>
      )}
    </>
  );
}
