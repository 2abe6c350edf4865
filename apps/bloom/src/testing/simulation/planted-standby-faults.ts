/** Faults of nodes with standbys, to prove that the rules of histories notice them. */
import type { PlantedFault } from './planted-faults.js';

type Port = Parameters<NonNullable<PlantedFault['port']>>[0];

/** Answers one kind of call without asking the member. */
function answering(type: string, answer: unknown): PlantedFault {
  return {
    port: (port) => ({
      ...port,
      call: ((...[node, message, options]: Parameters<Port['call']>) =>
        message.type === type ? Promise.resolve(answer) : port.call(node, message, options)) as Port['call'],
    }),
  };
}

export const STANDBY_FAULTS = {
  believesInSupport: answering('pulse', { votes: [] }),
  needsNoVotes: answering('vote', { granted: true, denied: [] }),
  getsNoVotes: answering('vote', { granted: false }),
} as const satisfies Readonly<Record<string, PlantedFault>>;
