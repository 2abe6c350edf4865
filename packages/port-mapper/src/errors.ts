/** Base of every error of this package; `code` is stable. */
export abstract class PortMapperError extends Error {
  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Nothing answers on the port of the mapper. */
export class PortMapperUnreachable extends PortMapperError {
  readonly code = 'PORT_MAPPER_UNREACHABLE';
  constructor(host: string, port: number, cause?: unknown) {
    super(`no port mapper answers on ${host}:${port}; start one by hand with: epmd -daemon`, { cause });
  }
}

/** The mapper answered something that is not its protocol, or nothing in time. */
export class PortMapperProtocolError extends PortMapperError {
  readonly code = 'PORT_MAPPER_PROTOCOL';
}

/** A node of that name is registered already. */
export class NameInUse extends PortMapperError {
  readonly code = 'NAME_IN_USE';
  constructor(readonly nodeName: string) {
    super(`a node called ${nodeName} is registered on this machine already`);
  }
}

/** The port belongs to a port mapper that works: use that one. */
export class PortMapperRunning extends PortMapperError {
  readonly code = 'PORT_MAPPER_RUNNING';
  constructor(readonly port: number) {
    super(`a port mapper is running on port ${port} already`);
  }
}

/** The port belongs to a program that is no port mapper. */
export class PortTaken extends PortMapperError {
  readonly code = 'PORT_TAKEN';
  constructor(
    readonly port: number,
    cause?: unknown,
  ) {
    super(`port ${port} is taken by a program that is no port mapper`, { cause });
  }
}
