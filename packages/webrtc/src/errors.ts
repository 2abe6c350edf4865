type WebrtcErrorCode =
  /** All UDP ports of the range are taken. */
  | 'NO_FREE_PORT'
  /** An address is no IP address, or cannot be listened on. */
  | 'BAD_ADDRESS'
  /** A relay user of this name exists. */
  | 'DUPLICATE_USER'
  /** The port or transport is closed. */
  | 'CLOSED';

/** A caller's mistake or a limit of the machine. Bad input from the network is counted instead (see `DropReason`). */
export class WebrtcError extends Error {
  constructor(
    readonly code: WebrtcErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'WebrtcError';
  }
}
