/** A caller's mistake or a machine's limit; what comes from the network is counted instead (see `DropReason`). */
export class WebrtcError extends Error {
  constructor(
    readonly code: 'NO_FREE_PORT' | 'BAD_ADDRESS' | 'DUPLICATE_USER' | 'CLOSED',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'WebrtcError';
  }
}
