export type PortMapperErrorCode =
  /** Nothing answers on the port of the mapper. */
  | 'PORT_MAPPER_UNREACHABLE'
  /** The answer violates the protocol, or did not come in time. */
  | 'PORT_MAPPER_PROTOCOL'
  /** A node with that name is already registered. */
  | 'NAME_IN_USE'
  /** The port belongs to a working port mapper: use that one. */
  | 'PORT_MAPPER_RUNNING'
  /** The port belongs to another program. */
  | 'PORT_TAKEN';

/** Every error of this package; `code` is stable. */
export class PortMapperError extends Error {
  override readonly name = 'PortMapperError';

  constructor(
    readonly code: PortMapperErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export function unreachable(host: string, port: number, cause?: unknown): PortMapperError {
  const message = `no port mapper answers on ${host}:${port}; start one by hand with: epmd -daemon`;
  return new PortMapperError('PORT_MAPPER_UNREACHABLE', message, { cause });
}
