// Tries one way to the server: a relayed candidate proves that packets arrive there and answers come back.
import type { CheckRelay, PathCheck } from '@bloom/server-sdk';
import { type Finding, notOffered, pathFinding, type PathOutcome, type Transport } from './report.js';

/** Browsers give up on a relay after about 10 s. */
const LIMIT_MS = 10_000;
/** Codes of a browser for a server that cannot be reached begin here; those of the server itself are below. */
const UNREACHABLE = 700;

/** Tries the addresses of one way at the same time. The first that works counts. */
export async function tryTransport({ relays }: PathCheck, transport: Transport): Promise<Finding> {
  const offered = relays.filter((relay) => relay.transport === transport);
  const [first] = offered;
  if (first === undefined) return notOffered(transport);
  const outcomes = await Promise.all(offered.map(async (relay) => ({ relay, outcome: await tryRelay(relay) })));
  const best = outcomes
    .flatMap(({ relay, outcome }) => ('ms' in outcome ? [{ relay, outcome }] : []))
    .toSorted((a, b) => a.outcome.ms - b.outcome.ms)[0];
  const { relay, outcome } = best ?? outcomes[0] ?? { relay: first, outcome: { refused: false } };

  return pathFinding(transport, relay.url, outcome);
}

async function tryRelay({ url: urls, username, credential }: CheckRelay): Promise<PathOutcome> {
  const connection = new RTCPeerConnection({
    iceServers: [{ urls, username, credential }],
    iceTransportPolicy: 'relay',
  });
  let refused = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const startedAt = performance.now();
    const outcome = new Promise<PathOutcome>((resolve) => {
      const fail = (): void => resolve({ refused });
      timer = setTimeout(fail, LIMIT_MS);
      connection.addEventListener('icecandidateerror', ({ errorCode }) => {
        if (errorCode < UNREACHABLE) refused = true;
      });
      connection.addEventListener('icecandidate', ({ candidate }) => {
        // The end of the candidates: null, or an empty text in some releases.
        if (candidate === null || candidate.candidate === '') fail();
        else if (candidate.candidate.includes(' typ relay')) resolve({ ms: Math.round(performance.now() - startedAt) });
      });
    });
    // Candidates are gathered only for something to send.
    connection.createDataChannel('check');
    await connection.setLocalDescription(await connection.createOffer());
    return await outcome;
  } finally {
    clearTimeout(timer);
    connection.close();
  }
}
