// How long a client waits before it takes a server for dead, a connection for lost or a node for gone; all in
// milliseconds except for the last.

/** Time limit for the answer to a request that proves that the server is alive. */
export const PROBE_MS = 3_000;
/** The same limit after sleep or a network change, when the socket is most likely dead. */
export const SUSPECT_PROBE_MS = 1_500;
/** A server that has not noticed the old connection's death refuses the new one for this long. */
export const STALE_SESSION_MS = 15_000;
/** A node that does not answer for this long counts as gone, so that the client asks for a seat on another node. */
export const UNREACHABLE_MS = 3_000;
/** A seat held for this long was good, whatever ends it. */
export const SETTLED_MS = 10_000;
/** The same where the server restarts, which it says: some restart one node after the other without a pause. */
export const RESTARTED_MS = 1_000;
/** Seats in a row that may be refused or lost within `SETTLED_MS`. */
export const DEFAULT_MAX_SEATS = 20;
