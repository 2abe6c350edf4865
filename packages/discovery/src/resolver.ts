/**
 * Queries the system's name servers for A records. `dns.lookup` sorts by our own address and may answer from a cache,
 * while discovery needs the current, complete set. UDP first, TCP when the answer was truncated (RFC 1035, section
 * 4.2).
 */
import { createSocket } from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { connect, isIPv6 } from 'node:net';
import { randomInt } from 'node:crypto';
import type { Packet } from 'dns-packet';
import dnsPacket from 'dns-packet';
import { candidateNames, parseResolvConf } from './resolv-conf.js';

type ResolveErrorCode =
  /** The name servers know no such name, or no address for it. */
  | 'NOT_FOUND'
  /** No name server gave a usable answer. */
  | 'FAILED';

export class ResolveError extends Error {
  override readonly name = 'ResolveError';
  constructor(
    readonly code: ResolveErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export type Resolve4 = (name: string) => Promise<string[]>;

/** More addresses than any cluster has members; further ones are ignored. */
const MAX_ADDRESSES = 1024;
const MAX_TCP_ANSWER = 65_535;

export interface ResolverOptions {
  /** Returns the text of resolv.conf. Called for each query, because containers rewrite the file. */
  readConfig?: () => Promise<string>;
  port?: number;
  /** Time limit for one answer of one server. Default from resolv.conf. */
  timeoutMs?: number;
}

export function createResolver(options: ResolverOptions = {}): Resolve4 {
  const readConfig = options.readConfig ?? (() => readFile('/etc/resolv.conf', 'utf8').catch(() => ''));
  const port = options.port ?? 53;

  return async function resolve4(name) {
    const config = parseResolvConf(await readConfig());
    const timeoutMs = options.timeoutMs ?? config.timeoutMs;
    let notFound = false;
    let failure: unknown;
    for (const candidate of candidateNames(name, config)) {
      for (let attempt = 0; attempt < config.attempts; attempt += 1) {
        let answered = false;
        for (const server of config.nameservers) {
          try {
            const addresses = await ask({ name: candidate, server, port, timeoutMs });
            if (addresses.length > 0) return addresses;
            notFound = true;
            answered = true;
            break;
          } catch (error) {
            failure = error;
          }
        }
        if (answered) break;
      }
    }
    if (notFound) throw new ResolveError('NOT_FOUND', `${name} has no IPv4 address`);
    throw new ResolveError('FAILED', `no resolver answered for ${name} (asked ${config.nameservers.join(', ')})`, {
      cause: failure,
    });
  };
}

interface Query {
  name: string;
  server: string;
  port: number;
  timeoutMs: number;
}

/**
 * Returns the addresses, or none when the server says that there are none.
 * @throws ResolveError FAILED when it gives no usable answer
 */
async function ask(query: Query): Promise<string[]> {
  const id = randomInt(65_536);
  const packet: Packet = {
    type: 'query',
    id,
    flags: dnsPacket.RECURSION_DESIRED,
    questions: [{ type: 'A', name: query.name }],
  };
  const first = readAnswer(await askUdp(dnsPacket.encode(packet), query), id, query.name);
  if (!first.truncated) return first.addresses;
  return readAnswer(await askTcp(dnsPacket.streamEncode(packet), query), id, query.name).addresses;
}

function readAnswer(data: Buffer, id: number, name: string): { truncated: boolean; addresses: string[] } {
  const answer = dnsPacket.decode(data);
  const asked = answer.questions?.[0]?.name;
  if (answer.id !== id || answer.type !== 'response' || asked?.toLowerCase() !== name.toLowerCase()) {
    throw failed(`the answer for ${name} belongs to another question`);
  }
  const code = (answer.flags ?? 0) & 0x0f;
  if (code === 3) return { truncated: false, addresses: [] };
  if (code !== 0) throw failed(`the resolver answered with error ${code} for ${name}`);
  const truncated = ((answer.flags ?? 0) & dnsPacket.TRUNCATED_RESPONSE) !== 0;
  const addresses = new Set<string>();
  for (const record of answer.answers ?? []) {
    if (record.type === 'A' && addresses.size < MAX_ADDRESSES) addresses.add(record.data);
  }
  return { truncated, addresses: [...addresses] };
}

function askUdp(request: Buffer, { server, port, timeoutMs }: Query): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(server) ? 'udp6' : 'udp4');
    const timer = setTimeout(() => finish(failed(`${server} did not answer within ${timeoutMs} ms`)), timeoutMs);
    let settled = false;
    const finish = (error: Error | undefined, data?: Buffer) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      socket.close();
      if (error !== undefined) reject(error);
      else resolve(data as Buffer);
    };
    // A connected socket only receives from the server that it queried.
    socket.on('error', finish);
    // Anyone can forge the server's address, so a wrong guess must not end the query (RFC 5452, section 9.1).
    socket.on('message', (data) => {
      if (answers(data, request)) finish(undefined, data);
    });
    // Without a route to the server this callback gets the error instead of the event.
    socket.connect(port, server, (error?: Error) => {
      if (error !== undefined) finish(error);
      else if (!settled) socket.send(request);
    });
  });
}

const HEADER_BYTES = 12;

/** Returns whether a datagram has the id and the question of the request. Its body may be cut off anywhere. */
function answers(data: Buffer, request: Buffer): boolean {
  const isResponse =
    data.length >= HEADER_BYTES && data.readUInt16BE(0) === request.readUInt16BE(0) && data[2]! >= 0x80;
  // A server that does not understand the request need not repeat the question.
  if (isResponse && data.readUInt16BE(4) === 0) return (data[3]! & 0x0f) !== 0;
  const asked = (packet: Buffer): string => packet.toString('latin1', HEADER_BYTES, request.length).toLowerCase();

  return isResponse && asked(data) === asked(request);
}

function askTcp(request: Buffer, { server, port, timeoutMs }: Query): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const socket = connect({ host: server, port });
    const finish = (error: Error | undefined, data?: Buffer) => {
      clearTimeout(timer);
      socket.destroy();
      if (error !== undefined) reject(error);
      else resolve(data as Buffer);
    };
    const timer = setTimeout(
      () => finish(failed(`${server} did not answer over TCP within ${timeoutMs} ms`)),
      timeoutMs,
    );
    socket.on('error', finish);
    socket.once('close', () => finish(failed(`${server} closed the connection before its answer was complete`)));
    socket.once('connect', () => socket.write(request));
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > MAX_TCP_ANSWER + 2) finish(failed(`${server} sent more than one answer`));
      if (length < 2) return;
      const all = chunks.length === 1 ? chunk : Buffer.concat(chunks);
      const wanted = all.readUInt16BE(0) + 2;
      if (length >= wanted) finish(undefined, all.subarray(2, wanted));
    });
  });
}

function failed(message: string): ResolveError {
  return new ResolveError('FAILED', message);
}
