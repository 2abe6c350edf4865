import { connect, type Socket } from 'node:net';
import { PortMapperError, unreachable } from './errors.js';
import {
  alive2Request,
  type NamesAnswer,
  namesRequest,
  type NodeEntry,
  parseAlive2Reply,
  parseNamesReply,
  parsePort2Reply,
  portPlease2Request,
} from './protocol.js';

/** Maximum size of a NAMES reply: 10,000 names of 255 bytes. */
const MAX_REPLY_BYTES = 4 * 1024 * 1024;

export interface MapperAddress {
  readonly host: string;
  readonly port: number;
  /** Default 10 s. */
  readonly timeoutMs?: number;
  /** Gives up once it is aborted. */
  readonly signal?: AbortSignal;
}

/**
 * Returns all nodes of the machine.
 * @throws PortMapperError PORT_MAPPER_UNREACHABLE, PORT_MAPPER_PROTOCOL
 */
export async function names(mapper: MapperAddress): Promise<NamesAnswer> {
  const answer = await ask(mapper, namesRequest(), (reply, ended) => (ended ? parseNamesReply(reply) : 'incomplete'));
  answer.socket.destroy();
  return answer.value;
}

/**
 * Returns the node registered as `name` (the part before `@`), or undefined.
 * @throws PortMapperError PORT_MAPPER_UNREACHABLE, PORT_MAPPER_PROTOCOL
 */
export async function lookUp(mapper: MapperAddress, name: string): Promise<NodeEntry | undefined> {
  const answer = await ask(mapper, portPlease2Request(name), parsePort2Reply);
  answer.socket.destroy();
  return answer.value === 'missing' ? undefined : answer.value;
}

export interface Lease {
  readonly creation: number;
  /** The registration lasts as long as this socket. */
  readonly socket: Socket;
}

/**
 * Registers once, without retries.
 * @throws PortMapperError NAME_IN_USE, PORT_MAPPER_UNREACHABLE, PORT_MAPPER_PROTOCOL
 */
export async function registerOnce(mapper: MapperAddress, entry: NodeEntry): Promise<Lease> {
  const { socket, value } = await ask(mapper, alive2Request(entry), parseAlive2Reply);
  if (value.result !== 0) {
    socket.destroy();
    const message = `a node called ${entry.name} is already registered on this machine`;
    throw new PortMapperError('NAME_IN_USE', message);
  }
  socket.setKeepAlive(true, 30_000);
  return { creation: value.creation, socket };
}

type Parse<T> = (reply: Buffer, ended: boolean) => T | 'incomplete' | undefined;

function ask<T>(mapper: MapperAddress, request: Buffer, parse: Parse<T>): Promise<{ socket: Socket; value: T }> {
  return new Promise((resolve, reject) => {
    const { host, port, signal } = mapper;
    const socket = connect({ host, port, noDelay: true });
    const pieces: Buffer[] = [];
    let size = 0;
    let settled = false;

    function fail(error: Error): void {
      if (settled) return;
      settle();
      socket.destroy();
      reject(error);
    }

    function settle(): void {
      settled = true;
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }

    function abort(): void {
      fail(protocolError(`the question to ${host}:${port} was aborted`));
    }

    function look(ended: boolean): void {
      if (settled) return;
      const value = parse(Buffer.concat(pieces), ended);
      if (value === 'incomplete') {
        if (ended)
          fail(protocolError(`the port mapper on ${host}:${port} closed the connection ${size} bytes into its answer`));
      } else if (value === undefined) {
        fail(protocolError(`the program on ${host}:${port} does not answer like a port mapper`));
      } else {
        settle();
        socket.off('data', receive).off('end', finish).off('close', finish);
        resolve({ socket, value });
      }
    }

    function receive(bytes: Buffer): void {
      size += bytes.length;
      pieces.push(bytes);
      if (size <= MAX_REPLY_BYTES) look(false);
      else fail(protocolError(`the answer of ${host}:${port} is longer than ${MAX_REPLY_BYTES} bytes`));
    }

    function finish(): void {
      look(true);
    }

    const timer = setTimeout(
      () => fail(protocolError(`the port mapper on ${host}:${port} did not answer in time`)),
      mapper.timeoutMs ?? 10_000,
    );
    signal?.addEventListener('abort', abort);
    socket.on('connect', () => socket.write(request));
    socket.on('data', receive).on('end', finish).on('close', finish);
    // Stays on the socket of a lease, whose end is noticed through 'close'.
    socket.on('error', (error) => fail(unreachable(host, port, error)));
  });
}

function protocolError(message: string): PortMapperError {
  return new PortMapperError('PORT_MAPPER_PROTOCOL', message);
}
