/** Faults of nodes with standbys, to prove that the rules of histories notice them. */
import type { PlantedFault } from './planted-faults.js';

type Port = Parameters<NonNullable<PlantedFault['port']>>[0];
type Answer = (node: string) => unknown;

/**
 * Answers one kind of call without asking the member. The answer may need the member's process, which is known from its
 * answers to pulses.
 */
function answering(type: string, answer: (processOf: (node: string) => string | undefined) => Answer): PlantedFault {
  const processes = new Map<string, string>();
  const ask = answer((node) => processes.get(node));

  return {
    port: (port) => ({
      ...port,
      call: ((...[node, message, options]: Parameters<Port['call']>) => {
        const planted = message.type === type ? ask(node) : undefined;
        const real = (): Promise<unknown> => port.call(node, message, options);
        if (message.type !== 'pulse') return planted === undefined ? real() : Promise.resolve(planted);
        const heard = real().then((reply) => {
          processes.set(node, (reply as { process: string }).process);
          return reply;
        });
        if (planted === undefined) return heard;
        heard.catch(() => undefined);

        return Promise.resolve(planted);
      }) as Port['call'],
    }),
  };
}

export const STANDBY_FAULTS = {
  believesInSupport: answering('pulse', (processOf) => (node) => {
    const process = processOf(node);
    return process === undefined ? undefined : { process, votes: [], noted: true };
  }),
  needsNoVotes: answering('vote', (processOf) => (node) => ({
    granted: true,
    process: processOf(node) ?? '',
    denied: [],
  })),
  getsNoVotes: answering('vote', () => () => ({ granted: false })),
  postsTwice: {
    post:
      (post) =>
      async (...request) => {
        await post(...request);
        await post(...request);
      },
  },
  postsNothing: { post: () => async () => undefined },
} as const satisfies Readonly<Record<string, PlantedFault>>;
