/** What is known about a media worker when a room or a transport has to be placed. */
export interface WorkerSample {
  /** Number of the worker. */
  worker: number;
  /** Share of time that its thread was busy over the last seconds, 0 to 1. */
  busy: number;
  transports: number;
  rooms: number;
  /** Transports opened since the share was measured. */
  unseen: number;
}

/** The worker of a room or a transport, and the figures behind the choice. Loads are those at that time. */
export interface WorkerChoice {
  worker: number;
  because: /** The room begins, or the worker it used has ended. */
    | 'least_busy'
    /** The room's worker has time left, or no other one has much more. */
    | 'not_busier'
    /** The room's worker is busier than this one, on which the room already has transports. */
    | 'busier_than_part'
    /** The room's worker is busier than all others. */
    | 'busier_than_others'
    /** There is no other worker. */
    | 'only_worker'
    /** The client has been told the worker's address already. */
    | 'told_before'
    /** There is no memory for a link to the worker that would have been chosen. */
    | 'no_memory';
  /** Expected load of the worker, 0 to 1 and above; absent if it was not looked at. */
  load?: number;
  /** The worker that it was compared with: the room's last one, or the least busy other one. */
  other?: { worker: number; load: number };
}
